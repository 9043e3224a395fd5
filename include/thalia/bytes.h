// Byte spans: how payloads enter and leave the library. Nothing here owns memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace thalia {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

/// The bytes of a contiguous sequence of trivially copyable elements. Valid as long as the
/// sequence.
template <typename Range>
ByteSpan as_byte_span(const Range& range) {
  using Element = std::remove_cvref_t<decltype(*std::data(range))>;
  static_assert(std::is_trivially_copyable_v<Element>);
  return std::as_bytes(std::span<const Element>(std::data(range), std::size(range)));
}

/// A 128-bit digest in canonical (big-endian) byte order, as it is in a file.
struct Digest128 {
  std::uint8_t bytes[16] = {};
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

/// A 256-bit digest (SHA-256) in the byte order in which it is printed.
struct Digest256 {
  std::uint8_t bytes[32] = {};
  friend bool operator==(const Digest256&, const Digest256&) = default;
};

/// A UUID of RFC 9562: its bytes in the order in which they are printed.
using Uuid = std::array<std::uint8_t, 16>;

}  // namespace thalia
