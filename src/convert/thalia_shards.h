// A model in several .thalia files with an index, as transformers.save_pretrained() of this package
// writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"
#include "thalia/state/delta.h"

namespace thalia::formats {

/// By its index. Tensors are file by file, by the names that they have in
/// formats without regions. @throws as opening each of its files; FormatError (inconsistent) where
/// index and files do not have the same tensors.
std::shared_ptr<const OpenedFile> open_thalia_shards(const io::InputFile& input,
                                                     const OpenOptions& options);

/// Each file by itself, as one that is named, and then what they are together.
VerifyReport verify_thalia_shards(const io::InputFile& input, const OpenOptions& options,
                                  const VerifyOptions& verify, bool resolve);

/// The same as one state, which keeps the files open.
struct ShardsState {
  StateSource state;
  std::vector<std::filesystem::path> files;  ///< the index, and the parts
  std::uint64_t file_bytes = 0;              ///< of all of them
};

/// Regions of one name become one, metadata are joined. @throws as open_thalia_shards(); UsageError
/// (duplicate) where two parts say something else of a region, or in a member of the metadata.
ShardsState open_shards_state(const io::InputFile& input, const ChainOptions& options);

}  // namespace thalia::formats
