// Boost.Test as all suites use it: linked dynamically (Meson says so), entry point in main.cc.
#pragma once

#include <boost/test/unit_test.hpp>
