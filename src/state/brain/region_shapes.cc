#include "state/brain/region_shapes.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "thalia/error.h"
#include "thalia/state/tensor_value.h"

namespace thalia::state {
namespace {

constexpr std::array<std::string_view, 3> kPerNeuron{
    "homeostatic.thresholds", "homeostatic.scaling_factors", "learning_state.silent_steps"};
constexpr std::array<std::string_view, 2> kPerSynapse{"learning_state.synapse_age",
                                                      "learning_state.synapse_importance"};

// Whether `path` is the tensor at `place`, or one below it.
bool is_at_or_below(std::string_view path, std::string_view place) {
  if (!path.starts_with(place)) return false;
  const std::string_view rest = path.substr(place.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '[';
}

void require_shape(std::string_view region, std::string_view path, const Shape& shape,
                   const Shape& expected) {
  if (shape == expected) return;
  throw UsageError(ErrorCode::size_mismatch, "the tensor has another shape than the region",
                   {.field = "shape",
                    .region = printable(region),
                    .tensor = printable(path),
                    .value = shape.to_string(),
                    .bound = expected.to_string()});
}

}  // namespace

ShapesByPath ruled_shapes(const BrainRegion& region) {
  ShapesByPath shapes;
  for_each_tensor(region.state, [&](const std::string& path, const Tensor& tensor) {
    const auto holds = [&](std::string_view place) { return is_at_or_below(path, place); };
    if (holds(component::kWeights) || std::ranges::any_of(kPerNeuron, holds) ||
        std::ranges::any_of(kPerSynapse, holds))
      shapes.emplace(path, tensor.shape());
  });
  return shapes;
}

void check_shapes(std::string_view name, std::uint64_t n_neurons, const ShapesByPath& shapes) {
  // A region without neurons says nothing that shapes could contradict.
  if (n_neurons == 0) return;
  for (const std::string_view path : kPerNeuron) {
    const auto found = shapes.find(path);
    if (found != shapes.end()) require_shape(name, path, found->second, Shape{n_neurons});
  }
  for (const std::string_view tracked : kPerSynapse) {
    for (auto at = shapes.lower_bound(tracked);
         at != shapes.end() && at->first.starts_with(tracked); ++at) {
      if (!is_at_or_below(at->first, tracked)) continue;
      const auto matrix =
          shapes.find(std::string(component::kWeights) + at->first.substr(tracked.size()));
      // What tracks no matrix is the application's own.
      if (matrix != shapes.end()) require_shape(name, at->first, at->second, matrix->second);
    }
  }
}

}  // namespace thalia::state
