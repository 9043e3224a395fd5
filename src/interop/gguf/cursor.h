// Reads the header of a GGUF file from front to back, and never past its end.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "format/little_endian.h"
#include "io/allocation_limit.h"
#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia::interop::gguf {

class Cursor {
 public:
  Cursor(ByteSpan file, const ReadLimits& limits)
      : file_(file), limits_(limits), most_(io::allocation_limit(limits, file.size())) {}

  std::uint64_t offset() const noexcept { return at_; }
  std::uint64_t left() const noexcept { return file_.size() - at_; }
  /// Of the part that is read, for messages. Static storage.
  void enter(std::string_view section) noexcept { section_ = section; }

  ByteSpan take(std::uint64_t bytes, std::string_view field) {
    if (bytes > left()) {
      fail_field(ErrorCode::truncated, section_, field, at_, fmt::format("{} bytes", bytes),
                 fmt::format("{}, what is left of the file", left()));
    }
    const ByteSpan taken = file_.subspan(at_, bytes);
    at_ += bytes;
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

  /// A u64 length and as many bytes, which stay in the file.
  std::string_view text(std::string_view field) {
    const std::uint64_t length = number<std::uint64_t>(field);
    const ByteSpan bytes = take(length, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// The u64 count of things of which each takes `least` bytes of the file or more.
  std::uint64_t count(std::string_view field, std::uint64_t least) {
    const std::uint64_t begin = at_;
    const std::uint64_t number_of = number<std::uint64_t>(field);
    check_count(number_of, least, field, begin);
    return number_of;
  }
  void check_count(std::uint64_t number_of, std::uint64_t least, std::string_view field,
                   std::uint64_t begin) const {
    if (number_of <= left() / least) return;
    fail_field(ErrorCode::truncated, section_, field, begin, std::to_string(number_of),
               fmt::format("at most {} in the {} bytes that are left", left() / least, left()));
  }

  /// Memory for `number_of` objects of `size` bytes, counted together with all before.
  void allocate(std::uint64_t number_of, std::uint64_t size) {
    // The count is at most the file's bytes, and the size small: the product fits.
    allocated_ += number_of * size;
    if (const auto bytes = allocated_.value(); !bytes || *bytes > most_)
      io::check_allocation(section_, bytes.value_or(UINT64_MAX), limits_, file_.size());
  }

 private:
  ByteSpan file_;
  const ReadLimits& limits_;
  std::uint64_t most_;  ///< asked for once: the system is asked how much memory there is
  std::uint64_t at_ = 0;
  std::string_view section_ = "header";
  CheckedSum allocated_;
};

}  // namespace thalia::interop::gguf
