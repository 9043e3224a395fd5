// Turns bytes into references to on-disk structs, after a check of the size. Nothing is copied: the
// references live as long as the bytes.
#pragma once

#include <span>

#include "base/fail.h"
#include "format/extent.h"
#include "thalia/types.h"

namespace thalia::format {

/// `count` structs of type T from `offset` on. @throws FormatError (truncated) if `bytes` ends
/// before them.
template <typename T>
std::span<const T> overlay_array(ByteSpan bytes, std::uint64_t offset, std::uint64_t count,
                                 std::string_view section) {
  static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
  std::uint64_t length;
  if (__builtin_mul_overflow(count, sizeof(T), &length) ||
      !lies_within({offset, length}, 0, bytes.size())) {
    fail_field(ErrorCode::truncated, section, "", offset,
               fmt::format("{} entries of {} bytes", count, sizeof(T)),
               fmt::format("end of file at {}", bytes.size()));
  }
  return {reinterpret_cast<const T*>(bytes.data() + offset), static_cast<std::size_t>(count)};
}

template <typename T>
const T& overlay(ByteSpan bytes, std::uint64_t offset, std::string_view section) {
  return overlay_array<T>(bytes, offset, 1, section).front();
}

/// The bytes of one on-disk struct.
template <typename T>
ByteSpan struct_bytes(const T& value) {
  static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace thalia::format
