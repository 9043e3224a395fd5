// Values of JSON plus tensors. A number is kept as its text, so that integers of any size and
// digits of any precision survive a round trip; it is parsed when it is asked for. Members keep
// their order and are searched one by one: objects are small, and if they are not, readers build
// an index (value_json.cc). A wrong kind is the caller's mistake and throws UsageError.

#include "thalia/state/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "json/number.h"
#include "json/reader.h"

namespace thalia {
namespace {

[[noreturn]] void fail_kind(Value::Kind kind, std::string_view wanted) {
  fail_argument(ErrorCode::wrong_state, "value", std::string(kind_name(kind)), std::string(wanted));
}

// As Python's repr(): the shortest digits that read back, a point or an exponent always, and
// exponents from 1e16 on and below 1e-4.
std::string python_repr(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> buffer;
  // The shortest digits, first with an exponent, which then decides between the two notations.
  const auto scientific = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                        std::chars_format::scientific);
  std::string text(buffer.data(), scientific.ptr);
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(),
                  exponent);
  if (number == 0) return std::signbit(number) ? "-0.0" : "0.0";
  // Both notations have the same digits; this is where Python changes from one to the other.
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  text.assign(buffer.data(), fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

// The whole text has to be an integer of the type: "1.0" and "1e3" are refused.
template <typename T>
T integer(const std::string& text, std::string_view wanted) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) {
    fail_argument(ErrorCode::bad_argument, "number", printable(text, 40), std::string(wanted));
  }
  return number;
}

}  // namespace

Value::Value(double number) : content_(Number{python_repr(number)}) {}
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(Tensor tensor) : content_(std::move(tensor)) {}
Value::Value(Content content) : content_(std::move(content)) {}

Value Value::array() {
  return Value(Content(std::vector<Value>()));
}

Value Value::object() {
  return Value(Content(std::vector<Member>()));
}

// Kept as it is; the three names that are no JSON are those of Python's json module.
Value Value::number(std::string text) {
  const bool known = text == "NaN" || text == "Infinity" || text == "-Infinity";
  if (!known && !json::is_number(text)) {
    fail_argument(ErrorCode::bad_argument, "number", printable(text, 40),
                  "a JSON number, NaN, Infinity or -Infinity");
  }
  return Value(Content(Number{std::move(text)}));
}

bool Value::as_bool() const {
  if (const bool* truth = std::get_if<bool>(&content_)) return *truth;
  fail_kind(kind(), "boolean");
}

const std::string& Value::number_text() const {
  if (const Number* number = std::get_if<Number>(&content_)) return number->text;
  fail_kind(kind(), "number");
}

double Value::as_double() const {
  const std::string& text = number_text();
  if (text == "NaN") return std::nan("");
  // Also reads Infinity; a number too large for f64 becomes one, as in Python.
  return json::to_double(text);
}

std::int64_t Value::as_int64() const {
  return integer<std::int64_t>(number_text(), "an integer of 64 bits");
}

std::uint64_t Value::as_uint64() const {
  return integer<std::uint64_t>(number_text(), "an integer from 0 to 2^64 - 1");
}

const std::string& Value::as_string() const {
  if (const auto* text = std::get_if<std::string>(&content_)) return *text;
  fail_kind(kind(), "string");
}

const Tensor& Value::as_tensor() const {
  if (const auto* tensor = std::get_if<Tensor>(&content_)) return *tensor;
  fail_kind(kind(), "tensor");
}

Tensor& Value::as_tensor() {
  if (auto* tensor = std::get_if<Tensor>(&content_)) return *tensor;
  fail_kind(kind(), "tensor");
}

const std::vector<Value>& Value::elements() const {
  if (const auto* elements = std::get_if<std::vector<Value>>(&content_)) return *elements;
  fail_kind(kind(), "array");
}

std::vector<Value>& Value::elements() {
  if (auto* elements = std::get_if<std::vector<Value>>(&content_)) return *elements;
  fail_kind(kind(), "array");
}

const std::vector<Value::Member>& Value::members() const {
  if (const auto* members = std::get_if<std::vector<Member>>(&content_)) return *members;
  fail_kind(kind(), "object");
}

std::vector<Value::Member>& Value::members() {
  if (auto* members = std::get_if<std::vector<Member>>(&content_)) return *members;
  fail_kind(kind(), "object");
}

std::size_t Value::size() const noexcept {
  if (const auto* elements = std::get_if<std::vector<Value>>(&content_)) return elements->size();
  if (const auto* members = std::get_if<std::vector<Member>>(&content_)) return members->size();
  return 0;
}

void Value::push_back(Value element) {
  elements().push_back(std::move(element));
}

const Value* Value::find(std::string_view name) const noexcept {
  const auto* members = std::get_if<std::vector<Member>>(&content_);
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, name, &Member::name);
  return found == members->end() ? nullptr : &found->value;
}

Value* Value::find(std::string_view name) noexcept {
  return const_cast<Value*>(std::as_const(*this).find(name));
}

const Value& Value::at(std::string_view name) const {
  members();
  if (const Value* found = find(name)) return *found;
  fail_argument(ErrorCode::not_found, "member", printable(name), "a member of the object");
}

Value& Value::at(std::string_view name) {
  return const_cast<Value&>(std::as_const(*this).at(name));
}

Value& Value::operator[](std::string_view name) {
  // As in most JSON libraries: writing to a member makes an object of null.
  if (is_null()) *this = object();
  members();
  if (Value* found = find(name)) return *found;
  return add(std::string(name), {});
}

Value& Value::add(std::string name, Value value) {
  // Does not look for the name: anybody who reads many members checks them by an index of its own.
  return members().emplace_back(Member{std::move(name), std::move(value)}).value;
}

bool Value::erase(std::string_view name) {
  auto* members = std::get_if<std::vector<Member>>(&content_);
  return members != nullptr &&
         std::erase_if(*members, [&](const Member& member) { return member.name == name; }) != 0;
}

bool Value::has_tensors() const noexcept {
  if (is_tensor()) return true;
  if (const auto* elements = std::get_if<std::vector<Value>>(&content_))
    return std::ranges::any_of(*elements, &Value::has_tensors);
  if (const auto* members = std::get_if<std::vector<Member>>(&content_)) {
    return std::ranges::any_of(*members,
                               [](const Member& member) { return member.value.has_tensors(); });
  }
  return false;
}

bool operator==(const Value& a, const Value& b) noexcept {
  return a.content_ == b.content_;
}

std::string_view kind_name(Value::Kind kind) noexcept {
  constexpr std::array<std::string_view, 7> kKindNames{"null",  "boolean", "number", "string",
                                                       "array", "object",  "tensor"};
  return kKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace thalia
