// Extents come from files as well as from callers, so every product is checked for overflow.
#include "thalia/types.h"

#include <algorithm>

#include "base/fail.h"

namespace thalia {

Shape::Shape(std::initializer_list<std::uint64_t> extents)
    : Shape(std::span<const std::uint64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::uint64_t> extents) {
  if (extents.size() > kMaxRank) {
    fail_argument(ErrorCode::bad_argument, "shape", fmt::format("{} dimensions", extents.size()),
                  "at most " + std::to_string(kMaxRank));
  }
  rank_ = static_cast<unsigned>(extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::optional<std::uint64_t> Shape::element_count() const noexcept {
  const auto all = extents();
  // A zero makes the tensor empty however large its other extents are.
  if (std::find(all.begin(), all.end(), 0) != all.end()) return 0;
  std::uint64_t count = 1;
  for (std::uint64_t extent : all) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::optional<std::uint64_t> Shape::byte_length(DType dtype) const noexcept {
  const auto count = element_count();
  if (!count) return std::nullopt;
  // Whole groups of eight elements first: count × bits could overflow even if the bytes do not.
  const std::uint64_t bits = dtype_bits(dtype);
  std::uint64_t bytes;
  if (__builtin_mul_overflow(*count / 8, bits, &bytes)) return std::nullopt;
  if (__builtin_add_overflow(bytes, (*count % 8 * bits + 7) / 8, &bytes)) return std::nullopt;
  return bytes;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(extents(), ", "));
}

}  // namespace thalia
