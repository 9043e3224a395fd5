// What convert() and extract() do between .thalia files. Each function puts the output in its place
// and fills in tensors, bytes and losses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thalia/formats/any_tensor.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/resolved_file.h"
#include "thalia/reader.h"

namespace thalia::formats {

using std::filesystem::path;

/// The file that convert() reads: of a folder the one that opens its model, unless `from` names a
/// format whose own reader looks through the folder.
path opened_path(const path& input, std::optional<FileFormat> from);

/// Copies the regions of these numbers, ascending, and the connections among them.
void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result);

/// A delta, and a model in parts, is resolved into an unnamed file in the output's folder, which
/// has to have room for a file of this size anyway.
ResolvedFile resolved_for(const path& input, const path& output, const ConvertOptions& options);

/// That of a path where a .thalia file is wanted: thalia_shards of a model in parts, else thalia,
/// whatever it is.
FileFormat thalia_format(const path& input, Access access);

/// Of an output that is there, and would be replaced. It may take the place of the input as a
/// whole, which is open by then, but not that of an index of .thalia files. @throws UsageError
/// (bad_argument) where it is another one of files_read(); what that throws.
void check_not_read(const path& input, const path& output, const OutputOptions& written,
                    const OpenOptions& options, std::optional<FileFormat> from);

/// What the directory says of a tensor; of a quantized one with its elements restored.
TensorSpec spec_of(const TensorView& tensor);

}  // namespace thalia::formats
