#include "store/save/declared_state.h"

#include <algorithm>
#include <cstdint>

#include "base/fail.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

// Borrows the bytes. Pieces are those of sparse arrays, which become one.
TensorSource source_of(const container::TensorPlan& tensor) {
  if (tensor.streamed)
    fail_argument(ErrorCode::bad_argument, "writer", printable(tensor.spec.name),
                  "a tensor that was declared with its bytes");
  const auto load = [&tensor] {
    const TensorLayout layout = tensor.spec.layout();
    if (tensor.pieces.size() == 1) return Tensor::adopt(layout, tensor.pieces.front(), nullptr);
    return Tensor::filled(layout, [&](MutableByteSpan out) {
      for (const ByteSpan piece : tensor.pieces) {
        std::ranges::copy(piece, out.begin());
        out = out.subspan(piece.size());
      }
    });
  };
  return {.spec = tensor.spec, .load = load};
}

}  // namespace

StateSource declared_state(const container::FilePlan& plan) {
  plan.check_complete();
  StateSource state{.metadata_json = plan.metadata, .training_steps = plan.training_steps};
  for (const container::RegionPlan& region : plan.regions) {
    RegionSource& source = state.regions.emplace_back(RegionSource{.spec = region.spec});
    for (const std::uint32_t tensor : region.tensors)
      source.tensors.push_back(source_of(plan.tensors[tensor]));
  }
  for (const container::ConnectionPlan& connection : plan.connections) {
    state.connections.push_back({.source = connection.source,
                                 .target = connection.target,
                                 .weights = source_of(plan.tensors[connection.weights])});
    if (connection.delays != container::ConnectionPlan::kNone)
      state.connections.back().delays = source_of(plan.tensors[connection.delays]);
  }
  return state;
}

}  // namespace thalia::store
