// The types of GGUF values: their numbers in files, their names in metadata, and what holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

/// As they are in files.
enum class ValueCode : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// A type that is not an array: its number, and its name.
template <typename T>
struct ValueType;

#define THALIA_GGUF_VALUE_TYPE(Type, code_, name_)      \
  template <>                                           \
  struct ValueType<Type> {                              \
    static constexpr ValueCode code = ValueCode::code_; \
    static constexpr std::string_view name{name_};      \
  }
THALIA_GGUF_VALUE_TYPE(std::uint8_t, u8, "u8");
THALIA_GGUF_VALUE_TYPE(std::int8_t, i8, "i8");
THALIA_GGUF_VALUE_TYPE(std::uint16_t, u16, "u16");
THALIA_GGUF_VALUE_TYPE(std::int16_t, i16, "i16");
THALIA_GGUF_VALUE_TYPE(std::uint32_t, u32, "u32");
THALIA_GGUF_VALUE_TYPE(std::int32_t, i32, "i32");
THALIA_GGUF_VALUE_TYPE(float, f32, "f32");
THALIA_GGUF_VALUE_TYPE(bool, boolean, "bool");
THALIA_GGUF_VALUE_TYPE(std::string, string, "string");
THALIA_GGUF_VALUE_TYPE(std::uint64_t, u64, "u64");
THALIA_GGUF_VALUE_TYPE(std::int64_t, i64, "i64");
THALIA_GGUF_VALUE_TYPE(double, f64, "f64");
#undef THALIA_GGUF_VALUE_TYPE

/// Calls `visit` with a std::type_identity of each type that an element can have, until it returns
/// true. @return whether it did.
template <typename Visit>
bool any_value_type(const Visit& visit) {
  return visit(std::type_identity<std::uint8_t>()) || visit(std::type_identity<std::int8_t>()) ||
         visit(std::type_identity<std::uint16_t>()) || visit(std::type_identity<std::int16_t>()) ||
         visit(std::type_identity<std::uint32_t>()) || visit(std::type_identity<std::int32_t>()) ||
         visit(std::type_identity<float>()) || visit(std::type_identity<bool>()) ||
         visit(std::type_identity<std::string>()) || visit(std::type_identity<std::uint64_t>()) ||
         visit(std::type_identity<std::int64_t>()) || visit(std::type_identity<double>());
}

template <typename T>
using Identity = typename T::type;

/// What names an array's type after that of its elements.
inline constexpr std::string_view kArraySuffix = "[]";

inline constexpr std::string_view kArchitectureKey = "general.architecture";
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::uint32_t kDefaultAlignment = 32;
/// Beyond, the padding of a few small tensors would fill a disk.
inline constexpr std::uint32_t kMostAlignment = 1u << 20;
inline constexpr unsigned kMostDimensions = 4;     ///< GGML_MAX_DIMS
inline constexpr std::size_t kMostNameBytes = 63;  ///< GGML_MAX_NAME, without the zero after it

constexpr bool is_alignment(std::uint64_t number) noexcept {
  return number != 0 && (number & (number - 1)) == 0;
}

}  // namespace thalia::formats::gguf
