// The columns of a packed delta's head and its digests, written and read by one description: what
// is written in an order is read in it. docs/format/packed.md, "Head".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/fail.h"
#include "format/overlay.h"
#include "thalia/types.h"

namespace thalia::container {

inline constexpr const char* kPackedSection = "wrapper";
/// After a tensor's name. No UTF-8 has it.
inline constexpr std::byte kNameEnd{0xFF};

/// Appends columns.
class ColumnWriter {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  void number(T& value, std::uint64_t = 0) {
    std::uint64_t left = static_cast<std::uint64_t>(value);
    for (; left >= 128; left >>= 7) out_.push_back(static_cast<std::byte>(left | 128));
    out_.push_back(static_cast<std::byte>(left));
  }
  /// How many of something follow, each of a byte or more.
  void count(std::uint64_t& value) { number(value); }
  void text(std::string& value) {
    const std::size_t size = value.size();
    number(size);
    append(as_byte_span(value));
  }
  void name(const std::string& value) {
    append(as_byte_span(value));
    out_.push_back(kNameEnd);
  }
  template <typename T>
  void object(T& value) {
    append(format::struct_bytes(value));
  }

  std::vector<std::byte> finish() && { return std::move(out_); }

 private:
  void append(ByteSpan bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte> out_;
};

/// Takes them. Nothing that is made is larger than a small multiple of the bytes that are there.
class ColumnReader {
 public:
  static constexpr bool kReads = true;

  /// @param field of the messages.
  ColumnReader(ByteSpan bytes, const char* field) : bytes_(bytes), field_(field) {}

  /// @param most that the value may be. @throws FormatError.
  template <typename T>
  void number(T& value, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t sum = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1).front());
      const std::uint64_t part = byte & 127;
      const bool is_last = byte < 128;
      // The tenth byte has the highest bit, and a last byte of zero would be left out.
      if (shift > 63 || (shift == 63 && part > 1) || (is_last && part == 0 && shift != 0))
        fail("a number in another form", "its shortest form");
      sum |= part << shift;
      if (is_last) break;
    }
    if (sum > most) fail(std::to_string(sum), fmt::format("at most {}", most));
    value = static_cast<T>(sum);
  }
  void count(std::uint64_t& value) { number(value, left()); }
  void text(std::string& value) {
    std::uint64_t size;
    number(size);
    if (size > left())
      fail(fmt::format("a text of {} bytes", size), fmt::format("{} left", left()));
    const ByteSpan bytes = take(size);
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void name(std::string& value) {
    const ByteSpan rest = bytes_.subspan(at_);
    const auto end = std::ranges::find(rest, kNameEnd);
    if (end == rest.end()) fail("a name", "its end");
    const auto length = static_cast<std::uint64_t>(end - rest.begin());
    value.assign(reinterpret_cast<const char*>(rest.data()), length);
    take(length + 1);
  }
  template <typename T>
  void object(T& value) {
    static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }

  std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  std::uint64_t taken() const noexcept { return at_; }
  /// @throws FormatError unless all was taken.
  void finish() const {
    if (left() != 0) fail(fmt::format("{} bytes more", left()), "the end");
  }
  [[noreturn]] void fail(std::string value, std::string bound) const {
    fail_field(ErrorCode::bad_value, kPackedSection, field_, at_, std::move(value),
               std::move(bound));
  }

 private:
  ByteSpan take(std::uint64_t length) {
    if (length > left()) {
      fail_field(ErrorCode::truncated, kPackedSection, field_, at_, "the end",
                 fmt::format("{} bytes more", length));
    }
    const ByteSpan bytes = bytes_.subspan(at_, length);
    at_ += length;
    return bytes;
  }

  ByteSpan bytes_;
  const char* field_;
  std::uint64_t at_ = 0;
};

}  // namespace thalia::container
