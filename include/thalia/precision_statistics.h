// How many tensors and bytes a state has of each precision, and what conversions to others cost.
// docs/format/states.md, "Precision".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "thalia/dtype.h"

namespace thalia {

enum class PrecisionKind : std::uint8_t {
  fp32,
  fp16,
  bf16,
  fp64,
  integer,  ///< spelled "int": i8, i16, i32 and i64, as the original program counts
  other,    ///< all else: bool, unsigned, packed and complex ones
};
inline constexpr std::size_t kPrecisionKindCount = 6;

std::string_view precision_kind_name(PrecisionKind kind) noexcept;
PrecisionKind precision_kind_of(DType dtype) noexcept;

/// A value type; sums that pass 2^64 - 1 stay there.
class PrecisionStatistics {
 public:
  struct Share {
    std::uint64_t count = 0;  ///< of tensors
    std::uint64_t bytes = 0;  ///< logical
    friend bool operator==(const Share&, const Share&) = default;
  };

  void add(DType dtype, std::uint64_t logical_bytes) noexcept;

  const Share& share(PrecisionKind kind) const noexcept {
    return shares_[static_cast<std::size_t>(kind)];
  }
  /// The share of the total's bytes; 0 where that is 0.
  double percent(PrecisionKind kind) const noexcept;
  Share total() const noexcept;

  /// JSON: {"fp32": {"count", "bytes", "percent"}, …, "total": {"count", "bytes"}}.
  std::string to_json() const;

  friend bool operator==(const PrecisionStatistics&, const PrecisionStatistics&) = default;

 private:
  std::array<Share, kPrecisionKindCount> shares_{};
};

/// Numbers that a conversion of types made something else of.
struct RoundedNumbers {
  std::uint64_t count = 0;
  std::string worst;  ///< the tensor with most of them: "REGION/NAME", or its name alone
                      ///< where the formats have no regions
  std::uint64_t worst_count = 0;  ///< in it
};

/// What conversions to other floating point types cost, over all tensors. Of finite numbers:
struct RoundingLoss {
  RoundedNumbers infinite;  ///< became infinite
  RoundedNumbers nan;       ///< became NaN
  RoundedNumbers zeroed;    ///< became zero, and were not
  RoundedNumbers
      subnormal;  ///< became subnormal, with fewer bits than the type has, and were normal
  double largest_error = 0;          ///< of those that stayed finite, |number - what became of it|
  std::string largest_error_tensor;  ///< where that is; empty where nothing was rounded
};

}  // namespace thalia
