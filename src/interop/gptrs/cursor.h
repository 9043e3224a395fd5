// Taking a file's fields one behind the other, none past the end of the part that they belong to.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "thalia/bytes.h"

namespace thalia::interop::gptrs {

/// Borrows the bytes.
class Cursor {
 public:
  /// `begin`: where `bytes` lie in the file, for messages.
  Cursor(std::string_view section, ByteSpan bytes, std::uint64_t begin)
      : section_(section), bytes_(bytes), begin_(begin) {}

  std::uint64_t offset() const noexcept { return begin_ + at_; }  ///< in the file
  std::uint64_t left() const noexcept { return bytes_.size() - at_; }

  /// @throws FormatError (truncated) where fewer are left.
  ByteSpan take(std::string_view field, std::uint64_t length) {
    if (length > left()) {
      fail_field(ErrorCode::truncated, section_, field, offset(), fmt::format("{} bytes", length),
                 fmt::format("at most {}", left()));
    }
    const ByteSpan taken = bytes_.subspan(at_, length);
    at_ += length;
    return taken;
  }
  /// A number, one of format::le32, le64.
  template <typename Number>
  Number number(std::string_view field) {
    Number value;
    std::memcpy(&value, take(field, sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text(std::string_view field, std::uint64_t length) {
    const ByteSpan taken = take(field, length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::string_view section_;
  ByteSpan bytes_;
  std::uint64_t begin_;
  std::size_t at_ = 0;
};

}  // namespace thalia::interop::gptrs
