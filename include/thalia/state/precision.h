// PrecisionPolicy: which floating point type each tensor of a state is stored in.
//
//   auto policy = thalia::parse_precision_policy("mixed");
//   auto custom = thalia::parse_precision_policy("weights=fp16,traces=bf16,default=fp32");
//   DType stored = thalia::stored_dtype(policy, "regions.cortex.weights.w_ff", Role::weights,
//                                 DType::f32, element_count);
//
// docs/format/states.md, "Precision".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

enum class Precision : std::uint8_t {
  fp32,
  fp16,
  bf16,
  automatic,  ///< spelled "auto": fp16 above 1 MiB, else fp32
  keep,       ///< as it is
};

enum class PrecisionCategory : std::uint8_t {
  weights,
  biases,
  membrane,
  traces,
  thresholds,
  conductances,
  other,  ///< spelled "default"
};
inline constexpr std::size_t kPrecisionCategoryCount = 7;

std::string_view precision_name(Precision precision) noexcept;
/// Takes f16, float16 and half, bfloat16, f32 and float32 for what they are, too.
std::optional<Precision> precision_from_name(std::string_view name) noexcept;
std::string_view category_name(PrecisionCategory category) noexcept;
std::optional<PrecisionCategory> category_from_name(std::string_view name) noexcept;

/// How a tensor's category is found.
enum class CategoryMatching : std::uint8_t {
  original,  ///< parts of words in the whole path, as the original program does; the role is unused
  role,      ///< the role, and whole words of the last name; what an optimizer keeps stays as it is
};

/// A precision for the tensors whose path a glob matches: '*' stands for any characters, '?' for
/// one. '.' and '/' are the same. The whole path has to match, or what follows one of its
/// separators: "weights/*" fits regions.cortex.weights.w_ff, and so does "w_ff". For a tensor of a
/// file, it may match REGION/NAME as well, as tensors are printed: "cortex/w_ff".
struct PrecisionPattern {
  std::string glob;
  Precision precision = Precision::keep;
  friend bool operator==(const PrecisionPattern&, const PrecisionPattern&) = default;
};

/// A value type. By default it keeps every tensor as it is.
struct PrecisionPolicy {
  Precision weights = Precision::keep;
  Precision biases = Precision::keep;
  Precision membrane = Precision::keep;
  Precision traces = Precision::keep;
  Precision thresholds = Precision::keep;
  Precision conductances = Precision::keep;
  Precision other = Precision::keep;
  /// The first that fits counts; where none does, the category.
  std::vector<PrecisionPattern> patterns{};
  CategoryMatching matching = CategoryMatching::role;

  Precision of(PrecisionCategory category) const noexcept;
  Precision& of(PrecisionCategory category) noexcept;
  /// True where no tensor can be changed by it.
  bool keeps_all() const noexcept;

  friend bool operator==(const PrecisionPolicy&, const PrecisionPolicy&) = default;
};

/// By name: fp32, fp16, bf16 (or another name of these), mixed, keep; or by items KEY=PRECISION
/// with commas between them. KEY is a category, or a pattern, which has '*', '?', '.' or '/' in it,
/// or is in double quotes, where \" and \\ stand for " and \; "match=original" sets the matching.
/// Categories that are not named get what "default" gets, or are kept if that is not named
/// either.
/// @throws UsageError (bad_argument, duplicate) naming the item and what it can be.
PrecisionPolicy parse_precision_policy(std::string_view text);
/// The text that parses to an equal policy, whatever its patterns are: a name if there is one.
std::string to_string(const PrecisionPolicy& policy);

/// The category by the rules of the original program, of a dotted path from the root of a state:
/// "regions.cortex.weights.w_ff". Words are found anywhere in it, in any case. If there are
/// several, the one that is first in the order of the categories counts.
PrecisionCategory category_of_path(std::string_view path);
/// The category by role and by the whole words of the path's last name.
PrecisionCategory category_of_role(Role role, std::string_view path);

/// The dtype that a tensor is stored in. Only f32, f64, f16 and bf16 ever become another, and what
/// an optimizer keeps only where a pattern names it, or the matching is the original program's.
/// @param element_count of the dense tensor, however it is stored.
DType stored_dtype(const PrecisionPolicy& policy, std::string_view path, Role role, DType dtype,
                   std::uint64_t element_count);

// How many tensors and bytes a state has of each precision, and what conversions to others cost.
// docs/format/states.md, "Precision".

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
  /// The share of the total's bytes; 0 if that is 0.
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

/// What conversions to other floating point types cost, over all tensors. The numbers that are
/// counted were finite:
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
