// What convert(), extract() and merge() do between .thalia files. Each function puts the output in
// its place and fills in tensors, bytes and losses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/file/input_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/file_facts.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"

namespace thalia::formats {

using std::filesystem::path;

/// The file that convert() reads: of a folder the one that opens its model, unless `from` names a
/// format whose own reader looks through the folder.
path opened_path(const path& input, std::optional<FileFormat> from);

/// convert() of a file that others look at too.
ConvertResult convert_input(const io::InputFile& input, const path& output,
                            const ConvertOptions& options);

/// Copies the regions of these numbers, ascending, and the connections among them.
void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result);

/// merge() of open inputs with a prefix for each. @throws as that.
void merge_brains(const std::vector<Reader>& inputs, const path& output,
                  const MergeOptions& merging, const ConvertOptions& options,
                  ConvertResult& result);

/// A ResolvedFile of an input that others look at too.
struct ResolvedInput {
  Reader reader;
  std::uint64_t copied_bytes = 0;  ///< of all files that were read; 0 where the reader is no copy's
};
ResolvedInput resolve_input(const io::InputFile& input, const path& folder,
                            const ChainOptions& options);
/// A delta, and a model in parts, is resolved into an unnamed file in the output's folder, which
/// has to have room for a file of this size anyway.
ResolvedInput resolved_for(const io::InputFile& input, const path& output,
                           const ConvertOptions& options);

/// is_in_parts() of such an input.
bool is_in_parts(const io::InputFile& input, Access access);
/// That of an input where a .thalia file is wanted: thalia_shards of a model in parts, else thalia,
/// whatever it is.
FileFormat thalia_format(const io::InputFile& input, Access access);

/// Checks an output that exists and would be replaced. It may take the place of the input as a
/// whole, which is open by then, but not that of an index of .thalia files. @throws UsageError
/// (bad_argument) if it is another one of files_read(); what that throws.
void check_not_read(const io::InputFile& input, const path& output, const OutputOptions& written,
                    const OpenOptions& options, FileFormat from);

/// What the directory says of a tensor; of a quantized one with its elements restored.
TensorSpec spec_of(const TensorView& tensor);

}  // namespace thalia::formats
