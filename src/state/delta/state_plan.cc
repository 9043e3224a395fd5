// A state that is given as sources, declared to a container: what a Writer would check is checked
// here, before a file is made. Tensors are numbered in one order by both functions, regions first
// and then each connection's weights and delays: keyed_tensors()[i] gives the bytes of the plan's
// tensor i.

#include "state/delta/state_plan.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/short_name.h"
#include "format/payload.h"

namespace thalia::state {
namespace {

// A connection's matrix has no name in a region: the plan keeps it apart from the regions'
// tensors.
container::TensorPlan matrix(const TensorSource& source, Role role) {
  container::TensorPlan tensor;
  tensor.spec = source.spec;
  tensor.spec.role = role;
  container::check_codes(tensor.spec);
  const auto length = format::payload_length(tensor.spec.layout());
  if (!length) {
    fail_argument(ErrorCode::bad_argument, "connection", tensor.spec.shape.to_string(),
                  "a matrix that the format has");
  }
  tensor.logical_length = *length;
  tensor.streamed = *length != 0;
  return tensor;
}

void check(const TensorSource& source) {
  if (source.load || source.open) return;
  fail_argument(ErrorCode::bad_argument, "load",
                fmt::format("'{}' without it", printable(source.spec.name)),
                "a function that gives the tensor");
}

}  // namespace

std::vector<KeyedTensor> keyed_tensors(const StateSource& state) {
  std::vector<KeyedTensor> out;
  const auto add = [&](const TensorSource& tensor, TensorKey key) {
    check(tensor);
    out.push_back({&tensor, std::move(key)});
  };
  for (const RegionSource& region : state.regions) {
    for (const TensorSource& tensor : region.tensors) {
      add(tensor,
          {.region = region.spec.name, .name = tensor.spec.name, .source = {}, .target = {}});
    }
  }
  for (const ConnectionSource& connection : state.connections) {
    TensorKey key{.region = {},
                  .name = {},
                  .source = container::short_name_string(connection.source),
                  .target = container::short_name_string(connection.target)};
    add(connection.weights, key);
    key.delays = true;
    if (connection.delays) add(*connection.delays, key);
  }
  return out;
}

container::FilePlan plan_of(const StateSource& state) {
  container::FilePlan plan;
  plan.set_metadata(state.metadata_json);
  plan.training_steps = state.training_steps;
  for (const RegionSource& region : state.regions) {
    const std::uint32_t id = plan.add_region(region.spec);
    for (const TensorSource& tensor : region.tensors) plan.add_tensor(id, tensor.spec, {}, true);
  }
  for (const ConnectionSource& connection : state.connections) {
    plan.add_connection(connection.source, connection.target);
    std::optional<container::TensorPlan> delays;
    if (connection.delays) delays = matrix(*connection.delays, Role::other);
    container::set_matrices(plan, matrix(connection.weights, Role::weights), std::move(delays));
  }
  return plan;
}

std::shared_ptr<const PartwiseBytes> open_tensor_bytes(const TensorSource& source,
                                                       std::uint64_t size) {
  // Read in parts, so that a tensor that is made on the way is never whole. Its bytes are trusted
  // to have the declared length; a tensor that is loaded tells its own layout, which is checked.
  if (source.open) return std::make_shared<FunctionBytes>(size, source.open());
  Tensor tensor = source.load();
  if (const TensorLayout layout = source.spec.layout(); tensor.layout() != layout) {
    fail_argument(ErrorCode::size_mismatch, "load",
                  fmt::format("{} {}", dtype_name(tensor.dtype()), tensor.shape().to_string()),
                  fmt::format("{} {}, and encoding and nnz of the spec", dtype_name(layout.dtype),
                              layout.shape.to_string()));
  }
  return std::make_shared<TensorBytes>(std::move(tensor));
}

}  // namespace thalia::state
