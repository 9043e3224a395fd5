// Writing the files of a planned model. docs/format/safetensors.md, "Writing a model".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>

#include "formats/safetensors/shard_plan.h"
#include "io/folder/lock.h"
#include "thalia/options.h"

namespace thalia::formats::safetensors {

/// Writes one file of a plan. @return its bytes.
using WriteModelFile = std::function<std::uint64_t(
    const std::filesystem::path& path, const PlannedFile& file, const OutputOptions& output)>;

/// File by file, the index last; then an older model's files go. @param folder the plan's, held
/// since before it was planned. @param sources as SinkOptions::sources. @return bytes of all files.
/// @param named the path that the caller gave: a link is followed nowhere else. Where the model
/// takes the place of all that the folder has, links of its names are replaced.
/// @throws IoError, CancelledError, what `write` throws: what was written is gone then, and the
/// older model is in place; UsageError: (exists), (bad_argument) where some of the sources would
/// go, and not all.
std::uint64_t write_model(io::HeldFolder& folder, const ModelPlan& plan,
                          const std::filesystem::path& named, const OutputOptions& given,
                          const std::stop_token& cancel,
                          std::span<const std::filesystem::path> sources,
                          const WriteModelFile& write);

}  // namespace thalia::formats::safetensors
