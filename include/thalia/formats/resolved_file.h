// A checkpoint in several .thalia files, for those who take one full file: a delta with its bases,
// or a model in parts that an index names.
#pragma once

#include <cstdint>
#include <filesystem>

#include "thalia/reader.h"
#include "thalia/state/delta.h"

namespace thalia {

/// A full .thalia file as it is; else the state of a delta, or of the parts that an index or its
/// folder names, as a file without a name, which nobody else can open, and which is gone with its
/// last reader, however the process ends. Quantized tensors have elements in such a file. Errors
/// about it name the delta or the index.
class ResolvedFile {
 public:
  /// @param folder on whose file system the state is kept meanwhile; empty: the temporary folder's.
  /// In memory where that has no files without names. @throws as state_source().
  ResolvedFile(const std::filesystem::path& path, const std::filesystem::path& folder,
               const ChainOptions& options = {});

  /// Valid after this is gone, as a copy of it.
  const Reader& reader() const noexcept { return reader_; }
  bool is_copy() const noexcept { return input_bytes_ != 0; }
  /// Of all files that were read; 0 where this is no copy.
  std::uint64_t input_bytes() const noexcept { return input_bytes_; }

 private:
  std::uint64_t input_bytes_ = 0;  ///< before the reader, whose opening sets it
  Reader reader_;
};

/// Whether the path is an index of .thalia files, or a folder that is opened by one.
/// @throws IoError.
bool is_in_parts(const std::filesystem::path& path, Access access = Access::mapped);

/// The state of a .thalia file, a delta, or the parts that an index or its folder names, all of
/// which it keeps open. Of parts: regions of one name are one; metadata are joined as by merge(),
/// and training steps are the greatest. @throws as ChainReader::open(); FormatError (inconsistent)
/// where index and parts do not have the same tensors; UsageError (duplicate) where two parts have
/// other texts or sizes for a region, or other metadata.
StateSource state_source(const std::filesystem::path& path, const ChainOptions& options = {});

/// write_delta() between two paths. Its base is one file, which may be a delta. @param input as
/// state_source() takes it.
/// @throws as both; UsageError (bad_argument) for a base in parts, or a target that is one of the
/// files that are read, other than `input` itself.
DeltaResult write_delta(const std::filesystem::path& base, const std::filesystem::path& input,
                        const std::filesystem::path& target, const ChainOptions& chain = {},
                        const DeltaOptions& options = {});

}  // namespace thalia
