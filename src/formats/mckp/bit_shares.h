// How many bits each tensor of a checkpoint gets, where sensitivities say which errors count.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "thalia/formats/compressor.h"

namespace thalia::formats {

/// The bits of those tensors that are quantized: 1 to 8, options.bits on average over their
/// elements.
/// @throws UsageError, with the tensor's name, for sensitivities that do not fit.
std::map<std::string, unsigned, std::less<>> bits_by_sensitivity(
    const Checkpoint& checkpoint, const MckpQuantizationOptions& options,
    const decltype(QuantizationConfig::sensitivity)& sensitivity, unsigned threads);

}  // namespace thalia::formats
