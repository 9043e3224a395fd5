// Little-endian integers of alignment 1. A struct made of them has no padding, may be laid over
// mapped bytes at any address, and never leaks the host's byte order. docs/format.md,
// "Conventions".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace thalia::format {

/// One unsigned integer stored as sizeof(T) bytes, least significant first. Converts implicitly
/// both ways; on a little-endian host a load compiles to one move.
template <typename T>
class LittleEndian {
  static_assert(std::is_unsigned_v<T>);

 public:
  LittleEndian() = default;
  LittleEndian(T value) { store(value); }  // NOLINT(google-explicit-constructor): it is an integer
  LittleEndian& operator=(T value) {
    store(value);
    return *this;
  }
  operator T() const {  // NOLINT(google-explicit-constructor): it is an integer
    T value;
    std::memcpy(&value, bytes_, sizeof(T));
    return swap(value);
  }

 private:
  static T swap(T value) {
    if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
      return value;
    } else {
      T out = 0;
      for (std::size_t i = 0; i < sizeof(T); ++i)
        out = static_cast<T>((out << 8) | ((value >> (8 * i)) & 0xff));
      return out;
    }
  }
  void store(T value) {
    value = swap(value);
    std::memcpy(bytes_, &value, sizeof(T));
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
