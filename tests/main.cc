// Entry point of every Boost.Test executable.
#define BOOST_TEST_MODULE thalia
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <locale>

#include "support/sanitizers.h"

namespace {

// Programs that use the library run in the user's locale, where a number may have a comma.
struct Locale {
  Locale() {
    const thalia::test::LeaksAllowed in_the_c_library;  // of LOCPATH, which it never lets go of
    if (const char* name = std::getenv("THALIA_TEST_LOCALE"))
      std::locale::global(std::locale(name));
  }
};

}  // namespace

BOOST_TEST_GLOBAL_CONFIGURATION(Locale);
