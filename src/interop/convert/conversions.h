// The conversions that convert() and extract() are made of, one function a pair of formats. Each
// puts the output in its place and fills in tensors, bytes and losses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/convert.h"
#include "thalia/delta.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"

namespace thalia::interop {

using std::filesystem::path;

void safetensors_to_safetensors(const path& input, const path& output,
                                const ConvertOptions& options, ConvertResult& result);
void safetensors_to_thalia(const path& input, const path& output, const ConvertOptions& options,
                           ConvertResult& result);
void thalia_to_safetensors(const Reader& reader, const path& output, const ConvertOptions& options,
                           ConvertResult& result);
void thalia_to_mckp(const Reader& reader, const path& output, const ConvertOptions& options,
                    ConvertResult& result);

/// Where either is mckp, or `from` is mst; `from` is not thalia, and `to` not mst.
void convert_mckp(const path& input, FileFormat from, const path& output, FileFormat to,
                  const ConvertOptions& options, ConvertResult& result);

/// Copies the regions of these numbers, ascending, and the connections among them.
void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result);

/// A delta is resolved into an unnamed file in the output's folder, which has to have room for a
/// file of this size anyway.
ResolvedFile resolved_for(const path& input, const path& output, const ConvertOptions& options);

/// What the directory says of a tensor.
TensorSpec spec_of(const TensorView& tensor);
/// Its role is what its name tells.
TensorSpec spec_of(const SafetensorsTensor& tensor);

}  // namespace thalia::interop
