#include "json/number.h"

#include <cmath>
#include <limits>
#include <string>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(json_number)

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

BOOST_AUTO_TEST_CASE(a_number_is_the_nearest_double) {
  BOOST_TEST(json::to_double("0.5") == 0.5);
  BOOST_TEST(json::to_double("-1234.25e-2") == -12.3425);
  BOOST_TEST(json::to_double("1E3") == 1000.0);
  BOOST_TEST(json::to_double("123456789012345678901234567890") == 123456789012345678901234567890.0);
  BOOST_TEST(json::to_double("4.9e-324") == 5e-324);
  BOOST_TEST(json::to_double("2.2250738585072014e-308") == 2.2250738585072014e-308);
  BOOST_TEST(json::to_double("1.7976931348623157e308") == 1.7976931348623157e308);
  BOOST_TEST(json::to_double("Infinity") == kInfinity);
  BOOST_TEST(json::to_double("-Infinity") == -kInfinity);
  BOOST_TEST(std::signbit(json::to_double("-0.0")));
}

BOOST_AUTO_TEST_CASE(what_no_double_reaches_is_infinite_or_zero) {
  const std::string zeros(400, '0');
  BOOST_TEST(json::to_double("1e309") == kInfinity);
  BOOST_TEST(json::to_double("-1e309") == -kInfinity);
  BOOST_TEST(json::to_double("1" + zeros) == kInfinity);
  BOOST_TEST(json::to_double("0." + zeros + "1e800") == kInfinity);
  BOOST_TEST(json::to_double("1e99999999999999999999999") == kInfinity);
  BOOST_TEST(json::to_double("1e-400") == 0.0);
  BOOST_TEST(std::signbit(json::to_double("-1e-400")));
  BOOST_TEST(json::to_double("0." + zeros + "1") == 0.0);
  BOOST_TEST(json::to_double("1" + zeros + "e-800") == 0.0);
  BOOST_TEST(json::to_double("1e-99999999999999999999999") == 0.0);
  BOOST_TEST(json::to_double("0e99999999999999999999999") == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
