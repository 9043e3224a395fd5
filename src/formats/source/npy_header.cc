// The header's grammar is that of the literals which writers of .npy files make, not all of
// Python's: one dict of three keys; texts without escapes, True and False, a tuple of numbers.
// Nothing nests, so nothing recurs.
#include "formats/source/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "format/foreign_file.h"
#include "format/little_endian.h"
#include "thalia/text.h"

namespace thalia::formats::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
// NumPy leaves room for the outermost extent to grow to this many digits.
constexpr std::size_t kMostDigits = 21;

[[noreturn]] void fail_npy(ErrorCode code, std::string_view field, std::uint64_t offset,
                           std::string value, std::string bound, std::string message = {}) {
  fail_field(code, "npy header", field, offset, std::move(value), std::move(bound),
             std::move(message));
}

[[noreturn]] void refuse_type(std::string_view descr, std::string_view why) {
  throw UnsupportedDtypeError(
      printable(descr), std::string(why),
      {.section = "npy header", .field = "descr", .value = printable(descr)});
}

// Walks the text. Offsets in messages are those of the array file.
class Literal {
 public:
  Literal(std::string_view text, std::uint64_t offset, unsigned version)
      : text_(text), begin_(offset), version_(version) {}

  NpyHeader read() {
    NpyHeader header;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    const auto once = [&](bool& seen, std::string_view key) {
      if (std::exchange(seen, true))
        fail_npy(ErrorCode::inconsistent, key, at(), "", "", "the key is there twice");
    };
    take('{');
    while (!skip('}')) {
      const std::string_view key = quoted();
      take(':');
      if (key == "descr") {
        once(seen_descr, key);
        header.descr = read_descr();
      } else if (key == "fortran_order") {
        once(seen_order, key);
        header.fortran_order = read_bool();
      } else if (key == "shape") {
        once(seen_shape, key);
        header.shape = read_shape();
      } else {
        fail_npy(ErrorCode::bad_value, "key", at(), printable(key),
                 "descr, fortran_order or shape");
      }
      if (!skip(',')) {
        take('}');
        break;
      }
    }
    space();
    if (!text_.empty()) fail_here("the end of the text");
    for (const auto& [seen, key] :
         {std::pair(seen_descr, "descr"), {seen_order, "fortran_order"}, {seen_shape, "shape"}}) {
      if (!seen) fail_npy(ErrorCode::bad_value, key, begin_, "", "", "the key is missing");
    }
    const auto type = npy_type(header.descr);
    if (!type) refuse_type(header.descr, why_no_npy_type(header.descr));
    header.type = *type;
    return header;
  }

 private:
  std::uint64_t at() const { return begin_ + used_; }
  void drop(std::size_t count) {
    text_.remove_prefix(count);
    used_ += count;
  }
  void space() {
    const std::size_t count = text_.find_first_not_of(" \t\r\n\f");
    drop(std::min(count, text_.size()));
  }
  [[noreturn]] void fail_here(std::string bound) const {
    fail_npy(ErrorCode::bad_value, "text", at(),
             text_.empty() ? "the end" : printable(text_.substr(0, 20)), std::move(bound));
  }
  bool skip(char c) {
    space();
    if (!text_.starts_with(c)) return false;
    drop(1);
    return true;
  }
  void take(char c) {
    if (!skip(c)) fail_here(std::string(1, c));
  }
  std::string_view quoted() {
    space();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') fail_here("a text in quotes");
    const std::size_t end = text_.find_first_of(std::string{quote, '\\', '\n'}, 1);
    if (end == std::string_view::npos || text_[end] != quote) fail_here("a text without escapes");
    const std::string_view text = text_.substr(1, end - 1);
    drop(end + 1);
    return text;
  }
  std::string read_descr() {
    space();
    if (text_.starts_with('[') || text_.starts_with('('))
      refuse_type(text_.substr(0, 100), "the array holds records of several fields");
    return std::string(quoted());
  }
  bool read_bool() {
    space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      drop(word.size());
      return value;
    }
    fail_here("True or False");
  }
  Shape read_shape() {
    std::vector<std::uint64_t> extents;
    take('(');
    while (!skip(')')) {
      if (extents.size() == Shape::kMaxRank) {
        throw UnsupportedError(ErrorCode::unsupported_feature, "the array has too many dimensions",
                               {.section = "npy header",
                                .field = "shape",
                                .offset = at(),
                                .value = fmt::format("more than {}", Shape::kMaxRank),
                                .bound = std::to_string(Shape::kMaxRank)});
      }
      extents.push_back(read_extent());
      if (skip(',')) continue;
      // (3) is a number in Python, and no tuple.
      if (extents.size() == 1) fail_here("a comma after the only extent");
      take(')');
      break;
    }
    return Shape(extents);
  }
  std::uint64_t read_extent() {
    space();
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto end = std::find_if_not(text_.begin(), text_.end(), is_digit);
    const std::string_view digits = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    if (digits.empty()) fail_here("an extent of 0 or more");
    std::uint64_t value = 0;
    for (const char c : digits) {
      if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
          __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
        fail_npy(ErrorCode::out_of_bounds, "shape", at(), printable(digits), "2^64 - 1");
    }
    drop(digits.size());
    // As Python 2 wrote whole numbers.
    if (version_ <= 2 && text_.starts_with('L')) drop(1);
    return value;
  }

  std::string_view text_;  ///< what is left
  std::uint64_t begin_;
  std::uint64_t used_ = 0;
  unsigned version_;
};

}  // namespace
}  // namespace thalia::formats::npy

namespace thalia::formats {

bool is_npy(ByteSpan start) noexcept {
  return start.size() >= npy::kMagic.size() &&
         std::memcmp(start.data(), npy::kMagic.data(), npy::kMagic.size()) == 0;
}

Shape NpyHeader::logical_shape() const {
  if (type.opaque <= 1) return shape;
  if (shape.rank() == Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "the array has too many dimensions for elements of several bytes",
                           {.section = "npy header", .field = "shape", .value = shape.to_string()});
  }
  std::vector<std::uint64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.push_back(type.opaque);
  return Shape(extents);
}

NpyHeader parse_npy_header(ByteSpan start, std::uint64_t file_bytes) {
  if (!is_npy(start)) {
    if (start.empty()) throw FormatError(ErrorCode::truncated, format::kEmptyFile);
    npy::fail_npy(ErrorCode::bad_magic, "magic", 0, "other bytes", "\\x93NUMPY");
  }
  // Bytes of the length: 2 in version 1, then 4.
  const unsigned version = start.size() > 6 ? std::to_integer<unsigned>(start[6]) : 1;
  const std::size_t prelude = version == 1 ? 10 : kNpyPrelude;
  if (start.size() < prelude) {
    npy::fail_npy(ErrorCode::truncated, "header_length", 8, fmt::format("{} bytes", start.size()),
                  std::to_string(prelude));
  }
  if (version < 1 || version > 3 || start[7] != std::byte{0}) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "npy header",
                            .field = "version",
                            .offset = 6,
                            .value = fmt::format("{}.{}", version, static_cast<int>(start[7])),
                            .bound = "1.0, 2.0 or 3.0"});
  }
  format::le32 length(0);
  std::memcpy(&length, start.data() + 8, prelude - 8);
  if (length > file_bytes - prelude) {
    npy::fail_npy(ErrorCode::truncated, "header_length", 8, std::to_string(length),
                  std::to_string(file_bytes - prelude));
  }
  constexpr std::uint32_t kMost = kMostNpyHeader - kNpyPrelude;
  if (length > kMost) {
    npy::fail_npy(ErrorCode::limit_exceeded, "header_length", 8, std::to_string(length),
                  std::to_string(kMost), "longer than NumPy reads from strangers");
  }
  if (length > start.size() - prelude) {
    npy::fail_npy(ErrorCode::truncated, "header_length", 8, std::to_string(length),
                  std::to_string(start.size() - prelude));
  }
  const ByteSpan text = start.subspan(prelude, length);
  NpyHeader header =
      npy::Literal({reinterpret_cast<const char*>(text.data()), text.size()}, prelude, version)
          .read();
  header.version = version;
  header.header_bytes = prelude + length;
  const auto expected = header.logical_shape().byte_length(header.type.dtype);
  const std::uint64_t behind = file_bytes - header.header_bytes;
  if (expected != behind) {
    npy::fail_npy(expected && *expected < behind ? ErrorCode::inconsistent : ErrorCode::truncated,
                  "shape", header.header_bytes, fmt::format("{} bytes of elements", behind),
                  expected ? std::to_string(*expected) : "a shape of less than 2^64 bytes");
  }
  return header;
}

std::string make_npy_header(std::string_view descr, bool fortran_order, const Shape& shape,
                            std::uint64_t header_bytes, unsigned version) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{}), }}", descr,
                                 fortran_order ? "True" : "False", fmt::join(shape.extents(), ", "),
                                 shape.rank() == 1 ? "," : "");
  const std::size_t prelude = version == 1 ? 10 : kNpyPrelude;
  const std::size_t least = prelude + text.size() + 1;
  const std::size_t most = prelude + (kMostNpyHeader - kNpyPrelude);
  std::size_t whole = header_bytes;
  if (header_bytes < least || header_bytes > most) {
    whole = least;
    if (shape.rank() != 0) {
      const std::uint64_t outermost = shape[fortran_order ? shape.rank() - 1 : 0];
      whole += npy::kMostDigits - std::to_string(outermost).size();
    }
    // At least one space, even where none is needed.
    whole += npy::kAlignment - whole % npy::kAlignment;
  }
  text.append(whole - least, ' ');
  text += '\n';
  std::string header(npy::kMagic);
  header += static_cast<char>(version);
  header += '\0';
  const format::le32 length(static_cast<std::uint32_t>(text.size()));
  header.append(reinterpret_cast<const char*>(&length), prelude - 8);
  return header + text;
}

}  // namespace thalia::formats
