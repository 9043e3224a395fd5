// What convert() and extract() do between .thalia files. Each function puts the output in its place
// and fills in tensors, bytes and losses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/convert.h"
#include "thalia/delta.h"
#include "thalia/reader.h"

namespace thalia::interop {

using std::filesystem::path;

/// Copies the regions of these numbers, ascending, and the connections among them.
void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result);

/// A delta is resolved into an unnamed file in the output's folder, which has to have room for a
/// file of this size anyway.
ResolvedFile resolved_for(const path& input, const path& output, const ConvertOptions& options);

/// By content, else by the name. @throws FormatError where neither tells; IoError where there is no
/// such file.
FileFormat input_format(const path& input);

/// What the directory says of a tensor; of a quantized one with its elements restored.
TensorSpec spec_of(const TensorView& tensor);

}  // namespace thalia::interop
