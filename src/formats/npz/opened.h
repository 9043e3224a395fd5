// The arrays of .npy and .npz files for conversions. The types OpenFormat of opened_file.h.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/opened_file.h"
#include "thalia/storage.h"

namespace thalia::formats {

/// Tensors are called as numpy.load calls the arrays. Reading compares CRC-32s, unless the options
/// say Verification::off.
std::shared_ptr<const OpenedFile> open_npz_file(const io::InputFile& input,
                                                const OpenOptions& options);
/// One tensor, called as the file without its ".npy".
std::shared_ptr<const OpenedFile> open_npy_file(const io::InputFile& input,
                                                const OpenOptions& options);

/// The same of a file's bytes. `path` is for messages, and the name of the one tensor.
std::shared_ptr<const OpenedFile> open_npz_bytes(StoredBytes bytes,
                                                 const std::filesystem::path& path,
                                                 const OpenOptions& options);
std::shared_ptr<const OpenedFile> open_npy_bytes(StoredBytes bytes,
                                                 const std::filesystem::path& path,
                                                 const OpenOptions& options);

}  // namespace thalia::formats
