// Writing the files of a planned model. docs/safetensors.md, "Writing a model".
#pragma once

#include <cstdint>

#include "interop/safetensors/shard_plan.h"
#include "interop/shared/tensor_sink.h"
#include "thalia/options.h"

namespace thalia::interop::safetensors {

/// File by file, the index last; then an older model's files go. @return bytes of all files.
/// @throws IoError, CancelledError, what `emit` throws: what was written is gone then, and the
/// older model is in place; UsageError (exists).
std::uint64_t write_model(const ModelPlan& plan, const OutputOptions& output, const Work& work,
                          const EmitPayload& emit);

}  // namespace thalia::interop::safetensors
