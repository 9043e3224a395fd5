// NAME.sha256: the digest of a file in the line that `sha256sum -c` takes. docs/format/store.md,
// "Digests".
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "io/file/file_bytes.h"
#include "store/run/run_files.h"
#include "thalia/types.h"

namespace thalia::store {

std::string sidecar_name(std::string_view file);

/// The digest in hexadecimal that lies beside `file`; nullopt if nothing does. @throws
/// IoError; FormatError (bad_value) for a text that is no such line, or of another file; UsageError
/// (bad_argument) for what is no file.
std::optional<std::string> read_sidecar(const io::Folder& folder, const std::string& file);
std::optional<std::string> read_sidecar(const RunFiles& files, const std::filesystem::path& file);

/// SHA-256 of all bytes of a file. @throws IoError; CancelledError.
Digest256 digest_of(const io::FileBytes& file, const std::stop_token& cancel = {});

}  // namespace thalia::store
