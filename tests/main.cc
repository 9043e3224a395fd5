// Entry point of every Boost.Test executable.
#define BOOST_TEST_MODULE thalia
#include <boost/test/unit_test.hpp>
