// Integers are JSON numbers whatever their size: they are read by their digits, not as doubles.
// Floats are the shortest decimals that read back as the same bits; those without one, NaN and the
// infinities, and strings that are not UTF-8, are {"hex":…} of their bytes: of floats the most
// significant first, as one writes them.
#include "formats/gguf/value_json.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/utf8.h"
#include "formats/gguf/value_types.h"
#include "json/number.h"
#include "thalia/text.h"

namespace thalia::formats::gguf {
namespace {

constexpr std::string_view kHexKey = "hex";

template <typename T>
using FloatBits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

void hex_to_json(JsonWriter& json, std::string_view digits) {
  json.begin_object().member(kHexKey, digits).end_object();
}

template <typename T>
T float_of_token(std::string_view token) {
  return static_cast<T>(json::to_double(token));
}

template <typename T>
void float_to_json(JsonWriter& json, T number) {
  const auto bits = std::bit_cast<FloatBits<T>>(number);
  std::string text;
  JsonWriter(text).value(number);
  // A float goes by way of a double, which could round it twice.
  if (json::is_number(text) && std::bit_cast<FloatBits<T>>(float_of_token<T>(text)) == bits) {
    json.raw(text);
    return;
  }
  std::array<std::uint8_t, sizeof(T)> bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[i] = static_cast<std::uint8_t>(bits >> (8 * (sizeof(T) - 1 - i)));
  hex_to_json(json, hex(bytes));
}

template <typename T>
void one_to_json(JsonWriter& json, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (is_valid_utf8(value)) {
      json.value(value);
    } else {
      hex_to_json(json, hex({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()}));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    float_to_json(json, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    json.value(value);
  } else if constexpr (std::is_signed_v<T>) {
    json.value(std::int64_t{value});
  } else {
    json.value(std::uint64_t{value});
  }
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes(digits.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit(digits[2 * i]), low = digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

// The bytes of {"hex":…}.
std::optional<std::string> bytes_of_json(json::Value& json) {
  std::optional<std::string> bytes;
  bool good = true;
  json.for_each_member([&](std::string_view key, json::Value& value) {
    good = good && key == kHexKey && !bytes && value.kind() == json::Kind::string;
    if (good) bytes = bytes_of_hex(value.string());
    good = good && bytes;
  });
  return good ? bytes : std::nullopt;
}

template <typename T>
std::optional<T> float_of_json(json::Value& json) {
  if (json.kind() == json::Kind::number) {
    const T number = float_of_token<T>(json.token());
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
  const auto bytes = bytes_of_json(json);
  if (!bytes || bytes->size() != sizeof(T)) return std::nullopt;
  FloatBits<T> bits = 0;
  for (const char byte : *bytes)
    bits = static_cast<FloatBits<T>>(bits << 8 | static_cast<std::uint8_t>(byte));
  return std::bit_cast<T>(bits);
}

template <typename T>
std::optional<T> one_from_json(json::Value& json) {
  constexpr bool kHexed = std::is_same_v<T, std::string> || std::is_floating_point_v<T>;
  if (json.kind() == json::Kind::object && !kHexed) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    if (json.kind() == json::Kind::string) return std::string(json.string());
    if (json.kind() == json::Kind::object) return bytes_of_json(json);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (json.kind() == json::Kind::number || json.kind() == json::Kind::object)
      return float_of_json<T>(json);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (json.kind() == json::Kind::boolean) return json.token() == "true";
  } else if (json.kind() == json::Kind::number) {
    const std::string_view token = json.token();
    T number{};
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (error == std::errc() && end == token.data() + token.size()) return number;
  }
  return std::nullopt;
}

template <typename T>
std::optional<GgufValue> array_from_json(json::Value& json) {
  if (json.kind() != json::Kind::array) return std::nullopt;
  std::vector<T> elements;
  bool good = true;
  json.for_each_element([&](json::Value& element) {
    if (!good) return;
    if (auto value = one_from_json<T>(element)) {
      elements.push_back(std::move(*value));
    } else {
      good = false;
    }
  });
  if (!good) return std::nullopt;
  return GgufArray(std::move(elements));
}

std::optional<GgufValue> typed_from_json(std::string_view type, json::Value& json) {
  const bool is_array = type.ends_with(kArraySuffix);
  if (is_array) type.remove_suffix(kArraySuffix.size());
  std::optional<GgufValue> result;
  any_value_type([&](auto identity) {
    using T = Identity<decltype(identity)>;
    if (type != ValueType<T>::name) return false;
    if (is_array) {
      result = array_from_json<T>(json);
    } else if (auto value = one_from_json<T>(json)) {
      result = std::move(*value);
    }
    return true;
  });
  return result;
}

}  // namespace

void value_to_json(JsonWriter& json, const GgufValue& value) {
  json.begin_object().key(gguf_type_name(value));
  std::visit(
      [&](const auto& held) {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, GgufArray>) {
          json.begin_array();
          std::visit(
              [&](const auto& elements) {
                using T = typename std::remove_cvref_t<decltype(elements)>::value_type;
                for (const T& element : elements) one_to_json<T>(json, element);
              },
              held);
          json.end_array();
        } else {
          one_to_json(json, held);
        }
      },
      value);
  json.end_object();
}

std::optional<GgufValue> value_from_json(json::Value& json) {
  if (json.kind() != json::Kind::object) return std::nullopt;
  std::optional<GgufValue> result;
  unsigned members = 0;
  json.for_each_member([&](std::string_view type, json::Value& value) {
    if (++members == 1) result = typed_from_json(type, value);
  });
  return members == 1 ? std::move(result) : std::nullopt;
}

}  // namespace thalia::formats::gguf
