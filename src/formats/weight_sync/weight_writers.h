// Writing what changed between two open models. docs/format/slime.md and docs/format/trl.md,
// "Writing"; docs/format/peft.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "formats/source/opened_file.h"
#include "thalia/formats/lora_adapter.h"
#include "thalia/formats/weight_delta.h"

namespace thalia::formats {

/// As write_weight_delta(), of two models that are open, but for base_bytes and seconds.
WeightDeltaResult write_slime_delta(const OpenedFile& base, const OpenedFile& next,
                                    const std::filesystem::path& folder,
                                    const WeightDeltaOptions& options);
WeightDeltaResult write_trl_delta(const OpenedFile& base, const OpenedFile& next,
                                  const std::filesystem::path& file,
                                  const WeightDeltaOptions& options);
/// As write_lora_adapter(), the same. @param base_name what the configuration calls the base.
LoraAdapterResult write_adapter(const OpenedFile& base, const OpenedFile& next,
                                const std::optional<std::string>& base_name,
                                const std::filesystem::path& folder,
                                const LoraAdapterOptions& options);

namespace weight_sync {

/// Hands on each tensor of both models, in the order of `next`, on several threads. @throws
/// UsageError (inconsistent) unless they have the same dense tensors; what `compare` throws, with
/// the tensor.
void compare_models(
    const OpenedFile& base, const OpenedFile& next, const Work& work,
    const std::function<void(std::size_t i, ByteSpan before, ByteSpan after)>& compare);

}  // namespace weight_sync
}  // namespace thalia::formats
