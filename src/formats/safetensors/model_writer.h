// Writing the files of a planned model. docs/format/safetensors.md, "Writing a model".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "formats/safetensors/shard_plan.h"
#include "formats/source/tensor_sink.h"
#include "io/folder/lock.h"
#include "thalia/options.h"

namespace thalia::formats::safetensors {

/// File by file, the index last; then an older model's files go. @param folder the plan's, held
/// since before it was planned. @param sources as SinkOptions::sources. @return bytes of all files.
/// @param named the path that the caller gave: a link is followed nowhere else.
/// @throws IoError, CancelledError, what `emit` throws: what was written is gone then, and the
/// older model is in place; UsageError: (exists), (bad_argument) where some of the sources would
/// go, and not all.
std::uint64_t write_model(io::HeldFolder& folder, const ModelPlan& plan,
                          const std::filesystem::path& named, const OutputOptions& given,
                          const Work& work, std::span<const std::filesystem::path> sources,
                          const EmitPayload& emit);

}  // namespace thalia::formats::safetensors
