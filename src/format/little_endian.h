// Little-endian integers and enumerators of alignment 1. A struct made of them has no padding, may
// be laid over mapped bytes at any address, and never leaks the host's byte order.
// docs/format/format.md, "Conventions".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace thalia::format {

/// The number in a file that stands for an enumerator.
template <typename E>
constexpr std::underlying_type_t<E> code_of(E value) noexcept {
  return static_cast<std::underlying_type_t<E>>(value);
}

/// One unsigned integer, or an enumerator of such a type, stored as sizeof(T) bytes, least
/// significant first. Converts implicitly both ways; on a little-endian host a load compiles to one
/// move. A file may have a number that is no enumerator: it is kept, for a check to refuse.
/// Enumerators of one byte need no such class and are fields themselves.
template <typename T>
class LittleEndian {
  using Number = typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                             std::type_identity<T>>::type;
  static_assert(std::is_unsigned_v<Number>);

 public:
  LittleEndian() = default;
  LittleEndian(T value) { store(value); }  // NOLINT(google-explicit-constructor): it is a number
  LittleEndian& operator=(T value) {
    store(value);
    return *this;
  }
  operator T() const {  // NOLINT(google-explicit-constructor): it is a number
    Number value;
    std::memcpy(&value, bytes_, sizeof(T));
    return static_cast<T>(swap(value));
  }

 private:
  static Number swap(Number value) {
    if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
      return value;
    } else {
      Number out = 0;
      for (std::size_t i = 0; i < sizeof(T); ++i)
        out = static_cast<Number>((out << 8) | ((value >> (8 * i)) & 0xff));
      return out;
    }
  }
  void store(T value) {
    const Number number = swap(static_cast<Number>(value));
    std::memcpy(bytes_, &number, sizeof(T));
  }
  std::uint8_t bytes_[sizeof(T)];
};

using le16 = LittleEndian<std::uint16_t>;
using le32 = LittleEndian<std::uint32_t>;
using le64 = LittleEndian<std::uint64_t>;

static_assert(sizeof(le16) == 2 && alignof(le16) == 1 && std::is_trivially_copyable_v<le16>);
static_assert(sizeof(le32) == 4 && alignof(le32) == 1 && std::is_trivially_copyable_v<le32>);
static_assert(sizeof(le64) == 8 && alignof(le64) == 1 && std::is_trivially_copyable_v<le64>);

}  // namespace thalia::format

/// Proves at compile time that an on-disk struct may be laid over bytes: its size, alignment 1, no
/// hidden parts.
#define THALIA_ON_DISK(Type, size)                                                          \
  static_assert(sizeof(Type) == (size) && alignof(Type) == 1, "size or alignment drifted"); \
  static_assert(std::is_trivially_copyable_v<Type> && std::is_standard_layout_v<Type>)

/// Proves at compile time the offset and the size of one field of an on-disk struct.
#define THALIA_FIELD(Type, field, offset, size)                                     \
  static_assert(offsetof(Type, field) == (offset) && sizeof(Type::field) == (size), \
                "field "                                                            \
                "drifted")
