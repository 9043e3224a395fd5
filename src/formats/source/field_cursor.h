// Takes a file's fields one after the other, none past the end of the part that they belong to.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/fail.h"
#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::formats {

/// Borrows the bytes. Messages name the section that is entered, which is static storage, and the
/// field.
class FieldCursor {
 public:
  /// @param begin where `bytes` lie in the file.
  FieldCursor(std::string_view section, ByteSpan bytes, std::uint64_t begin = 0)
      : section_(section), bytes_(bytes), begin_(begin) {}

  std::uint64_t offset() const noexcept { return begin_ + at_; }  ///< in the file
  std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  std::string_view section() const noexcept { return section_; }
  void enter(std::string_view section) noexcept { section_ = section; }

  /// @throws FormatError (truncated) where fewer are left.
  ByteSpan take(std::uint64_t length, std::string_view field) {
    if (length > left()) {
      fail_field(ErrorCode::truncated, section_, field, offset(), fmt::format("{} bytes", length),
                 fmt::format("at most {}, what is left", left()));
    }
    const ByteSpan taken = bytes_.subspan(at_, length);
    at_ += length;
    return taken;
  }

  /// A number of 1, 2, 4 or 8 bytes, or a float.
  template <typename T>
  T number(std::string_view field) {
    using Bits = std::conditional_t<
        sizeof(T) == 8, std::uint64_t,
        std::conditional_t<sizeof(T) == 4, std::uint32_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
    format::LittleEndian<Bits> stored;
    std::memcpy(&stored, take(sizeof(T), field).data(), sizeof stored);
    return std::bit_cast<T>(static_cast<Bits>(stored));
  }

  /// Bytes that stay in the file.
  std::string_view text(std::uint64_t length, std::string_view field) {
    const ByteSpan bytes = take(length, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::string_view section_;
  ByteSpan bytes_;
  std::uint64_t begin_;
  std::uint64_t at_ = 0;
};

}  // namespace thalia::formats
