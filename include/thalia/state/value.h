// Value: a tree of JSON values with tensors among its leaves. What a state consists of.
//
//   thalia::Value learning = thalia::Value::object();
//   learning["eligibility"] = thalia::Tensor::zeros(thalia::DType::f32, {n, m});
//   learning["stp"]["tau_ms"] = 200.0;
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/tensor_value.h"

namespace thalia {

/// A value type: copies are independent (tensors share their bytes until one is changed). Objects
/// keep their members in the order in which they were added, each name once. Externally
/// synchronised.
class Value {
 public:
  enum class Kind { null, boolean, number, string, array, object, tensor };
  struct Member;

  // Implicit: a value is what it is made of.
  Value() = default;  ///< null
  template <std::same_as<bool> T>
  Value(T truth);  // NOLINT(*-explicit-*)
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T number);  // NOLINT(*-explicit-*)
  /// The shortest text that reads back as the same number, as Python writes it: "0.1", "8.0",
  /// "1e-07", "NaN", "-Infinity".
  Value(double number);          // NOLINT(*-explicit-*)
  Value(std::string text);       // NOLINT(*-explicit-*)
  Value(std::string_view text);  // NOLINT(*-explicit-*)
  Value(const char* text);       // NOLINT(*-explicit-*)
  Value(Tensor tensor);          // NOLINT(*-explicit-*)
  static Value array();
  static Value object();
  /// A number as its text, kept digit for digit whatever its size: "10", "1e400", "NaN",
  /// "Infinity", "-Infinity". @throws UsageError (bad_argument) if the text is not a number.
  static Value number(std::string text);

  Kind kind() const noexcept { return static_cast<Kind>(content_.index()); }
  bool is_null() const noexcept { return kind() == Kind::null; }
  bool is_object() const noexcept { return kind() == Kind::object; }
  bool is_array() const noexcept { return kind() == Kind::array; }
  bool is_tensor() const noexcept { return kind() == Kind::tensor; }

  // @throws UsageError (wrong_state) naming both kinds where the value is of another kind; for a
  // number (bad_argument) if it has no such value.
  bool as_bool() const;
  double as_double() const;
  std::int64_t as_int64() const;
  std::uint64_t as_uint64() const;
  const std::string& number_text() const;
  const std::string& as_string() const;
  const Tensor& as_tensor() const;
  Tensor& as_tensor();
  const std::vector<Value>& elements() const;
  std::vector<Value>& elements();
  const std::vector<Member>& members() const;
  std::vector<Member>& members();

  /// Elements of an array, members of an object, else 0.
  std::size_t size() const noexcept;
  void push_back(Value element);  ///< @throws UsageError (wrong_state) unless this is an array

  /// nullptr if there is no such member, or the value is no object. Looks at one member after
  /// the other.
  const Value* find(std::string_view name) const noexcept;
  Value* find(std::string_view name) noexcept;
  /// @throws UsageError (not_found); (wrong_state) unless this is an object.
  const Value& at(std::string_view name) const;
  Value& at(std::string_view name);
  /// Adds null if there is no such member; a null becomes an object first. @throws UsageError
  /// (wrong_state) for other kinds.
  Value& operator[](std::string_view name);
  /// Adds a member without looking for the name, which must not be there yet.
  Value& add(std::string name, Value value);
  /// True if there was one.
  bool erase(std::string_view name);

  /// Any tensor in the tree below, this value included.
  bool has_tensors() const noexcept;

  friend bool operator==(const Value& a, const Value& b) noexcept;

 private:
  struct Number {
    std::string text;
    friend bool operator==(const Number&, const Number&) = default;
  };
  // In the order of Kind.
  using Content = std::variant<std::monostate, bool, Number, std::string, std::vector<Value>,
                               std::vector<Member>, Tensor>;
  explicit Value(Content content);

  Content content_;
};

struct Value::Member {
  std::string name;
  Value value;
  friend bool operator==(const Member& a, const Member& b) noexcept = default;
};

// Here, where Member is known: a variant of it cannot be made or destroyed before.
template <std::same_as<bool> T>
Value::Value(T truth) : content_(truth) {}
template <std::integral T>
requires(!std::same_as<T, bool>) Value::Value(T number)
    : content_(Number{std::to_string(number)}) {}

std::string_view kind_name(Value::Kind kind) noexcept;

/// A JSON text (RFC 8259) of any value as a tree without tensors; numbers keep their text. If a
/// name occurs twice, the last value counts. @throws FormatError (bad_json, limit_exceeded) within
/// the limits on depth and bytes.
Value parse_json(std::string_view json, const ReadLimits& limits = {});
/// Compact JSON, which parse_json() reads back as an equal value. @throws UsageError (bad_argument)
/// for a tensor, or a number that JSON has no text for (NaN, infinities), naming the path to it.
std::string to_json(const Value& value);

}  // namespace thalia
