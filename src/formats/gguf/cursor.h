// Reads the header of a GGUF file from front to back, with memory for no more than there is.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "formats/source/field_cursor.h"
#include "io/memory/allocation_limit.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats::gguf {

class Cursor : public FieldCursor {
 public:
  Cursor(ByteSpan file, const ReadLimits& limits)
      : FieldCursor("header", file), budget_(limits, file.size()) {}

  /// A u64 length and as many bytes, which stay in the file.
  std::string_view text(std::string_view field) {
    const std::uint64_t length = number<std::uint64_t>(field);
    return FieldCursor::text(length, field);
  }

  /// The u64 count of things of which each takes `least` bytes of the file or more.
  std::uint64_t count(std::string_view field, std::uint64_t least) {
    const std::uint64_t begin = offset();
    const std::uint64_t number_of = number<std::uint64_t>(field);
    check_count(number_of, least, field, begin);
    return number_of;
  }
  void check_count(std::uint64_t number_of, std::uint64_t least, std::string_view field,
                   std::uint64_t begin) const {
    if (number_of <= left() / least) return;
    fail_field(ErrorCode::truncated, section(), field, begin, std::to_string(number_of),
               fmt::format("at most {} in the {} bytes that are left", left() / least, left()));
  }

  /// Memory for `number_of` objects of `size` bytes, counted together with all before.
  void allocate(std::uint64_t number_of, std::uint64_t size) {
    budget_.take(section(), number_of, size);
  }

 private:
  io::MemoryBudget budget_;
};

}  // namespace thalia::formats::gguf
