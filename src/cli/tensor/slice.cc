// Reads the argument of --slice. Unlike Python's slices nothing is clipped: a position outside of
// the tensor is a mistake that an empty result would hide. Errors name the dimension.
#include "cli/tensor/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

constexpr std::string_view kField = "--slice";

[[noreturn]] void refuse(std::string_view value, std::string bound, std::string message = {}) {
  throw UsageError(ErrorCode::bad_argument, std::move(message),
                   {.field = std::string(kField),
                    .value = fmt::format("'{}'", value),
                    .bound = std::move(bound)});
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma; (comma = text.find(',')) != std::string_view::npos;) {
    parts.push_back(trimmed(text.substr(0, comma)));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(trimmed(text));
  return parts;
}

// Reads a position of at most `last`. A negative one counts from the end, and is at least -extent.
std::uint64_t position(std::string_view text, unsigned dimension, std::uint64_t extent,
                       std::uint64_t last) {
  std::string_view digits = text;
  const bool negative = !digits.empty() && digits.front() == '-';
  if (negative) digits.remove_prefix(1);
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || stop != end || error == std::errc::invalid_argument) {
    refuse(text, "a whole number", fmt::format("dimension {}", dimension));
  }
  const bool too_long = error == std::errc::result_out_of_range;
  if (too_long || value > (negative ? extent : last)) {
    refuse(text, fmt::format("-{} to {}", extent, last), fmt::format("dimension {}", dimension));
  }
  // -0 is the first position, not the end.
  return negative && value != 0 ? extent - value : value;
}

SliceRange parse_range(std::string_view part, unsigned dimension, std::uint64_t extent) {
  const std::size_t colon = part.find(':');
  const std::string_view first = trimmed(part.substr(0, colon));
  const std::string_view last = trimmed(part.substr(colon + 1));
  if (last.find(':') != std::string_view::npos) {
    refuse(part, "FIRST:END", fmt::format("dimension {}: there are no steps", dimension));
  }
  const std::uint64_t begin = first.empty() ? 0 : position(first, dimension, extent, extent);
  const std::uint64_t end = last.empty() ? extent : position(last, dimension, extent, extent);
  if (begin > end) {
    refuse(part, fmt::format("an end of at least {}", begin),
           fmt::format("dimension {}: the range ends at {}, before it begins", dimension, end));
  }
  return {begin, end};
}

SliceRange parse_index(std::string_view part, unsigned dimension, std::uint64_t extent) {
  if (extent == 0) {
    refuse(part, "a range", fmt::format("dimension {} is empty and has no index", dimension));
  }
  const std::uint64_t index = position(part, dimension, extent, extent - 1);
  return {index, index + 1};
}

}  // namespace

Slice whole(const Shape& shape) {
  Slice slice{.ranges = {}, .kept = {}, .shape = shape};
  for (unsigned d = 0; d < shape.rank(); ++d) {
    slice.ranges.push_back({0, shape[d]});
    slice.kept.push_back(d);
  }
  return slice;
}

Slice parse_slice(std::string_view text, const Shape& shape) {
  std::vector<std::string_view> parts = split(text);
  if (parts == std::vector<std::string_view>{""}) parts.clear();

  const auto ellipsis = std::find(parts.begin(), parts.end(), "...");
  const std::size_t before = static_cast<std::size_t>(ellipsis - parts.begin());
  const std::size_t given = parts.size() - (ellipsis == parts.end() ? 0 : 1);
  if (given > shape.rank()) {
    refuse(text, fmt::format("at most {}", shape.rank()),
           fmt::format("{} parts for a tensor of shape {}", given, shape.to_string()));
  }
  if (ellipsis != parts.end()) {
    if (std::find(ellipsis + 1, parts.end(), "...") != parts.end()) refuse(text, "one '...'");
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(before));
  }
  // Where the ellipsis was, or at the end, ":" stands for each dimension that has no part.
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(before), shape.rank() - given, ":");

  Slice slice;
  std::vector<std::uint64_t> extents;
  for (unsigned d = 0; d < shape.rank(); ++d) {
    const bool is_range = parts[d].find(':') != std::string_view::npos;
    const SliceRange range =
        is_range ? parse_range(parts[d], d, shape[d]) : parse_index(parts[d], d, shape[d]);
    slice.ranges.push_back(range);
    if (!is_range) continue;
    slice.kept.push_back(d);
    extents.push_back(range.end - range.begin);
  }
  slice.shape = Shape(std::span<const std::uint64_t>(extents));
  return slice;
}

}  // namespace thalia::cli
