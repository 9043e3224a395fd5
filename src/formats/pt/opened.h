// A .pt file as what conversions read through.
#pragma once

#include "formats/source/opened_file.h"
#include "thalia/storage.h"

namespace thalia::formats::pt {

/// The member of the metadata that is the file's own, and the format's name.
inline constexpr std::string_view kPtMember = "pt";
/// Where thalia_checkpoint has its tree.
inline constexpr std::string_view kTreeMember = "thalia_checkpoint";
inline constexpr unsigned kTreeVersion = 1;

/// Tensors that share memory are one tensor of the source, and the tree in the metadata says where
/// each lies in it. @throws IoError; FormatError for damage, and for whatever passes a limit;
/// IntegrityError where a pickle's checksum does not hold; UnsupportedError naming a Python object
/// that the file needs, for files from before PyTorch 1.6, and for tensors that nothing here can
/// hold. With Access::copied the whole file is read into memory.
std::shared_ptr<const OpenedFile> open_pt_file(const io::InputFile& input,
                                               const OpenOptions& options);

/// The same of a file's bytes. `path` is for messages.
std::shared_ptr<const OpenedFile> open_pt_bytes(StoredBytes bytes,
                                                const std::filesystem::path& path,
                                                const OpenOptions& options);

}  // namespace thalia::formats::pt
