// Checks a state before it is written, so that no file has shapes that contradict each other:
// docs/format/states.md, "Shapes". Readers do not ask for any of this.

#include "state/brain/shapes.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/utf8.h"
#include "state/brain/axes.h"
#include "thalia/error.h"

namespace thalia::state {
namespace {

constexpr std::array<std::string_view, 3> kPerNeuron{
    "homeostatic.thresholds", "homeostatic.scaling_factors", "learning_state.silent_steps"};
constexpr std::array<std::string_view, 2> kPerSynapse{"learning_state.synapse_age",
                                                      "learning_state.synapse_importance"};

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

void check_shapes(std::string_view name, const BrainRegion& region) {
  // A region without neurons says nothing that shapes could contradict.
  if (region.n_neurons == 0) return;
  for (const std::string_view path : kPerNeuron) {
    const Value* found = region.find_path(path);
    if (found != nullptr && found->is_tensor())
      require_shape(name, path, found->as_tensor().shape(), Shape{region.n_neurons});
  }
  // Collected once for both, and only where a state tracks its synapses.
  std::unordered_map<std::string, Shape> weights;
  for (const std::string_view tracked : kPerSynapse) {
    const Value* found = region.find_path(tracked);
    if (found == nullptr) continue;
    if (weights.empty()) {
      for_each_tensor(region.component(component::kWeights),
                      [&](const std::string& matrix, const Tensor& tensor) {
                        weights.emplace(matrix, tensor.shape());
                      });
    }
    for_each_tensor(*found, [&](const std::string& matrix, const Tensor& tensor) {
      const auto of_matrix = weights.find(matrix);
      // What tracks no matrix is the application's own.
      if (of_matrix != weights.end()) {
        require_shape(name, fmt::format("{}.{}", tracked, matrix), tensor.shape(),
                      of_matrix->second);
      }
    });
  }
  std::optional<RegionAxes> axes;
  try {
    axes.emplace(name, region);
  } catch (const UsageError&) {
    return;  // "axes" of the application's own
  }
  axes->check_declared();
}

}  // namespace thalia::state
