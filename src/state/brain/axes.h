// Which axes of a region's tensors count its neurons, and which the inputs from a source.
// docs/format/growth.md, "Growth".
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/error.h"
#include "thalia/state/brain.h"

namespace thalia::state {

/// One bit a dimension.
using AxisSet = std::bitset<Shape::kMaxRank>;

/// What the metadata's "axes" call an axis: "neurons"; "neurons/K", of a population code;
/// "neurons:NAME", of a population; "source:NAME".
struct AxisName {
  enum class Kind { other, neurons, population, source };
  Kind kind = Kind::other;
  std::string_view name{};  ///< of the population or the source; of the text that was parsed
  std::uint64_t neurons_per_element = 1;  ///< that one index stands for
};
AxisName parse_axis(std::string_view axis) noexcept;

/// Gives other names to the regions that the axes in a region's metadata name as sources. What is
/// not as the page says stays as it is.
void rename_sources(Value& metadata, const std::function<std::string(const std::string&)>& rename);

/// The axes of one region's tensors, as `axes` or the metadata say; if neither does, by names
/// and shapes. Refers to the region and the names.
class RegionAxes {
 public:
  /// @param axes by patterns of tensors go before the metadata. @param population of a region with
  /// several: the one meant.
  /// @throws UsageError (bad_argument) if the "axes" of the metadata are no object of arrays of
  /// texts; (not_found) for a pattern that fits no tensor of the region.
  RegionAxes(std::string_view name, const BrainRegion& region, const TensorAxes& axes = {},
             std::string_view population = {});

  struct Neurons {
    AxisSet axes;
    std::uint64_t per_element = 1;  ///< neurons that one index stands for
  };
  /// The axes of neurons; in a region with populations, those of the population that was named.
  /// @throws UsageError (wrong_state) if the shape leaves open which axes these are, or the
  /// region has populations and none is named; (size_mismatch) if an axis has another extent
  /// than the region neurons.
  Neurons neurons(const std::string& path, const Shape& shape) const;
  /// @throws UsageError (size_mismatch) if "axes" has another number of them than the tensor.
  AxisSet source(const std::string& path, const Shape& shape, std::string_view source) const;
  /// @throws UsageError (size_mismatch, wrong_state) if declared axes do not fit their tensors,
  /// the region's neurons or each other.
  void check_declared() const;
  /// Some axis is one of "neurons:NAME".
  bool has_populations() const noexcept { return has_populations_; }
  /// All sources that any tensor has an axis of, sorted.
  std::vector<std::string> sources() const;

 private:
  /// Declares the axes of all tensors that a pattern fits. @throws UsageError (not_found).
  void declare(const std::string& key, const std::vector<std::string>& names);
  const std::vector<std::string>* declared(const std::string& path, const Shape& shape) const;
  Neurons by_declaration(const std::string& path, const Shape& shape,
                         const std::vector<std::string>& axes) const;
  template <typename Visit>
  void for_each_source(const std::string& path, const Shape& shape, const Visit& visit) const;
  AxisSet by_shape(const std::string& path, const Shape& shape) const;
  [[noreturn]] void refuse(ErrorCode code, const std::string& path, const Shape& shape,
                           std::string bound, std::string message) const;

  std::string_view name_;
  const BrainRegion& region_;
  std::string_view population_;
  TensorAxes axes_;
  bool has_populations_ = false;
};

}  // namespace thalia::state
