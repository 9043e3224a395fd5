// A whole state as the plan of a delta's container.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "container/plan/file_plan.h"
#include "state/delta/file_chain.h"
#include "state/delta/partwise_bytes.h"
#include "thalia/state/delta.h"

namespace thalia::state {

struct KeyedTensor {
  const TensorSource* tensor;
  TensorKey key;
};

/// The tensors of a state in the order in which a writer counts them: the regions', then each
/// connection's weights and delays. Borrows the state. @throws UsageError for one without bytes.
std::vector<KeyedTensor> keyed_tensors(const StateSource& state);

/// The plan of what the state declares; its tensors are streamed. @throws UsageError as Writer.
container::FilePlan plan_of(const StateSource& state);

/// A source's bytes, checked against its spec. @param size logical bytes. @throws UsageError
/// (size_mismatch); what the source throws.
std::shared_ptr<const PartwiseBytes> open_tensor_bytes(const TensorSource& source,
                                                       std::uint64_t size);

}  // namespace thalia::state
