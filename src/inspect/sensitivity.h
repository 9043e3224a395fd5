// How much errors of weights count, as a file of tensors says it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "thalia/options.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"

namespace thalia::inspect {

/// For QuantizationOptions::sensitivity: of each weight the tensor of its name in a .thalia or
/// safetensors file, which stays open as long as the function. In a .thalia file the region of the
/// same name comes first, then any other. @throws IoError, FormatError; so does the function.
std::function<std::optional<Tensor>(const QuantizationTarget&)> sensitivities_of(
    const std::filesystem::path& path, const ReadOptions& read);

}  // namespace thalia::inspect
