// Boost.Test as all suites use it: linked dynamically (Meson says so), entry point in main.cc.
#pragma once

#include <boost/test/unit_test.hpp>

// A case is a plain function. Boost's own macro makes a fixture and a guarded call of each, which
// takes the compiler longer than most cases do.
#undef BOOST_AUTO_TEST_CASE
#define BOOST_AUTO_TEST_CASE(name)                                                     \
  static void name##_case();                                                           \
  static const boost::unit_test::ut_detail::auto_test_unit_registrar name##_registrar( \
      boost::unit_test::make_test_case(&name##_case, #name, __FILE__, __LINE__),       \
      boost::unit_test::decorator::collector_t::instance());                           \
  static void name##_case()
