#include "thalia/state/value.h"

#include <array>
#include <cmath>
#include <limits>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(value)

BOOST_AUTO_TEST_CASE(members_keep_the_order_in_which_they_were_added) {
  Value value;
  value["b"] = 1;
  value["a"] = true;
  value["b"] = 2;
  BOOST_TEST(value.members().size() == 2);
  BOOST_TEST(value.members()[0].name == "b");
  BOOST_TEST(value.at("b").as_int64() == 2);
  BOOST_TEST(value.at("a").as_bool());
}

BOOST_AUTO_TEST_CASE(null_becomes_an_object_when_a_member_is_set) {
  Value value;
  value["a"]["b"]["c"] = "deep";
  BOOST_TEST(value.at("a").at("b").at("c").as_string() == "deep");
}

BOOST_AUTO_TEST_CASE(other_kinds_do_not_become_objects) {
  Value value = 3;
  expect<UsageError>([&] { value["a"]; }, ErrorCode::wrong_state);
  BOOST_TEST(value.find("a") == nullptr);
}

// What CPython 3.11's repr() prints for the same doubles.
BOOST_AUTO_TEST_CASE(doubles_are_written_as_python_writes_them) {
  const auto text = [](double x) { return Value(x).number_text(); };
  BOOST_TEST(text(0.1) == "0.1");
  BOOST_TEST(text(8) == "8.0");
  BOOST_TEST(text(-0.0) == "-0.0");
  BOOST_TEST(text(1e-7) == "1e-07");
  BOOST_TEST(text(0.0001) == "0.0001");
  BOOST_TEST(text(0.00001) == "1e-05");
  BOOST_TEST(text(1e22) == "1e+22");
  BOOST_TEST(text(1e16) == "1e+16");
  BOOST_TEST(text(123456789012345680.0) == "1.2345678901234568e+17");
  BOOST_TEST(text(9007199254740992.0) == "9007199254740992.0");
  BOOST_TEST(text(5e-324) == "5e-324");
  BOOST_TEST(text(1.7976931348623157e308) == "1.7976931348623157e+308");
  BOOST_TEST(text(50.44366765259478) == "50.44366765259478");
  BOOST_TEST(text(std::nan("")) == "NaN");
  BOOST_TEST(text(std::numeric_limits<double>::infinity()) == "Infinity");
  BOOST_TEST(text(-std::numeric_limits<double>::infinity()) == "-Infinity");
}

// Also in a locale that writes them with a comma: "model with commas" runs this again.
BOOST_AUTO_TEST_CASE(numbers_are_read_with_a_point) {
  BOOST_TEST(Value::number("0.5").as_double() == 0.5);
  BOOST_TEST(Value::number("-1234.5e-1").as_double() == -123.45);
  BOOST_TEST(Value::number("1e400").as_double() == std::numeric_limits<double>::infinity());
  BOOST_TEST(Value(0.5).number_text() == "0.5");
  BOOST_TEST(parse_json(R"({"a":2.25})").at("a").as_double() == 2.25);
}

BOOST_AUTO_TEST_CASE(numbers_keep_their_digits) {
  const Value large = Value::number("123456789012345678901234567890");
  BOOST_TEST(large.number_text() == "123456789012345678901234567890");
  BOOST_TEST(large.as_double() == 1.2345678901234568e29);
  expect<UsageError>([&] { large.as_int64(); }, ErrorCode::bad_argument);
  BOOST_TEST(Value(std::numeric_limits<std::uint64_t>::max()).as_uint64() ==
             std::numeric_limits<std::uint64_t>::max());
  expect<UsageError>([] { Value(-1).as_uint64(); }, ErrorCode::bad_argument);
  expect<UsageError>([] { Value(1.5).as_int64(); }, ErrorCode::bad_argument);
}

BOOST_AUTO_TEST_CASE(refuses_texts_that_are_no_numbers) {
  for (const char* text : {"", "-", "01", "1.", ".5", "1e", "nan", "0x1", "1 ", "--1", "Inf"})
    expect<UsageError>([&] { Value::number(text); }, ErrorCode::bad_argument);
}

BOOST_AUTO_TEST_CASE(access_names_both_kinds) {
  const auto& error = expect<UsageError>([] { Value("text").as_double(); }, ErrorCode::wrong_state);
  BOOST_TEST(error.context().value == "string");
  BOOST_TEST(error.context().bound == "number");
}

BOOST_AUTO_TEST_CASE(a_missing_member_is_named) {
  const Value object = Value::object();
  const auto& error = expect<UsageError>([&] { object.at("gone"); }, ErrorCode::not_found);
  BOOST_TEST(error.context().value == "gone");
}

BOOST_AUTO_TEST_CASE(copies_are_independent) {
  Value a;
  a["t"] = Tensor::zeros(DType::f32, {2});
  Value b = a;
  b["t"].as_tensor().mutable_as<float>()[0] = 1;
  BOOST_TEST(a.at("t").as_tensor().as<float>()[0] == 0);
  BOOST_TEST(!(a == b));
}

BOOST_AUTO_TEST_CASE(tensors_are_found_however_deep) {
  Value value;
  value["list"] = Value::array();
  BOOST_TEST(!value.has_tensors());
  Value inner;
  inner["t"] = Tensor();
  value["list"].push_back(inner);
  BOOST_TEST(value.has_tensors());
  BOOST_TEST(value.erase("list"));
  BOOST_TEST(!value.erase("list"));
  BOOST_TEST(!value.has_tensors());
}

BOOST_AUTO_TEST_SUITE_END()
