// The bytes of a .thalia file, whatever is around them: frames, a side file or a delta. Which of
// them it is, the content tells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file/file_bytes.h"
#include "io/file/input_file.h"
#include "thalia/options.h"

namespace thalia::container {

/// A plain file as `access` says; the content of a wrapped one, and the extents of a side file, in
/// memory; of a delta, its container. @throws IoError; UsageError (bad_argument) if the path is
/// no regular file; for files that are not plain, FormatError, IntegrityError and UnsupportedError.
std::shared_ptr<const io::FileBytes> open_bytes(const io::InputFile& input, Access access,
                                                const ReadLimits& limits);

/// The same for a file that is open.
std::shared_ptr<const io::FileBytes> contents_of(std::shared_ptr<const io::FileBytes> file,
                                                 const ReadLimits& limits);

/// To be called before a file is changed in place. @throws UnsupportedError if it is not plain.
void require_plain(const io::FileBytes& file);
/// The same by a file's first bytes.
void require_plain(ByteSpan start, const std::filesystem::path& path);

}  // namespace thalia::container
