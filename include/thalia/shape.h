// Shapes of up to eight dimensions, held by value: no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "thalia/dtype.h"

namespace thalia {

/// Extents of a tensor, outermost first; rank 0 is a scalar with one element, an extent of 0 an
/// empty tensor.
class Shape {
 public:
  static constexpr unsigned kMaxRank = 8;

  Shape() = default;
  /// @throws UsageError (bad_argument) above kMaxRank dimensions.
  Shape(std::initializer_list<std::uint64_t> extents);
  explicit Shape(std::span<const std::uint64_t> extents);

  unsigned rank() const noexcept { return rank_; }
  std::uint64_t operator[](unsigned dimension) const noexcept { return extents_[dimension]; }
  std::span<const std::uint64_t> extents() const noexcept { return {extents_.data(), rank_}; }
  /// Product of the extents; nullopt where it passes 2^64 - 1.
  std::optional<std::uint64_t> element_count() const noexcept;
  /// Bytes of a dense tensor of this shape, packed types rounded up to a byte; nullopt on overflow.
  std::optional<std::uint64_t> byte_length(DType dtype) const noexcept;
  /// "[3, 4]", "[]".
  std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::uint64_t, kMaxRank> extents_{};
  unsigned rank_ = 0;
};

}  // namespace thalia
