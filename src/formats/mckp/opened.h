// MCKP files, read through the interface of all formats.
#pragma once

#include "formats/source/check_tensors.h"
#include "formats/source/opened_file.h"

namespace thalia::formats {

/// An OpenFormat. The tables are there without the files that a delta was taken against; these are
/// opened when the first tensor is read, or at once where verification is at_open. So is the
/// checksum of the whole file compared, unless verification is off or by_tensor: a tensor's own
/// always is. The metadata are those of the file's user, verbatim.
std::shared_ptr<const OpenedFile> open_mckp_file(const io::InputFile& input,
                                                 const OpenOptions& options);
/// A VerifyFormat. The content hash is that of the restored tensors, so a delta needs the files
/// that it was taken against.
VerifyReport verify_mckp(const io::InputFile& input, const OpenOptions& options,
                         const VerifyOptions& verify, bool resolve);

}  // namespace thalia::formats
