// A file whose bytes were held against the digest beside it before anybody parsed them.
// docs/format/store.md, "Loading".
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/file/file_bytes.h"
#include "store/run/run_files.h"
#include "store/run/run_folder.h"
#include "thalia/error.h"
#include "thalia/store/run.h"

namespace thalia::store {

enum class MissingDigest {
  warn,    ///< and check_whole() has to vouch for the file
  refuse,  ///< IntegrityError
};

struct CheckedFile {
  std::shared_ptr<const io::FileBytes> bytes;
  bool has_digest = false;
};

/// Digests in hexadecimal that something else than NAME.sha256 has for a file: asked for if
/// that is missing. One of them has to be the file's, unless there is none.
using OtherDigests = std::function<std::vector<std::string>()>;

/// Opens the file and, where the options ask for it, reads all of it: with calls that report a disk
/// that fails. @throws IoError; IntegrityError (checksum_mismatch); FormatError for a digest that
/// is not one; CancelledError.
CheckedFile open_checked(const RunFiles& files, const std::filesystem::path& path,
                         const LoadOptions& options, MissingDigest missing,
                         const OtherDigests& others = {});

/// The same as a checkpoint, with the files that it is based on, each checked like this one. A file
/// without a digest is held against its own checksums. @throws as above, and ChainReader::open().
ChainReader open_chain_checked(const RunFiles& files, const std::filesystem::path& path,
                               const LoadOptions& options, MissingDigest missing,
                               const OtherDigests& others = {});

/// The checkpoints of a phase as they are tried: the latest, then what is older, the newest first,
/// then what was left behind by going back.
std::vector<CheckpointEntry> loading_order(const RunListing& listing);
/// @throws UsageError (wrong_state) where a run's files are no .thalia files.
void require_thalia(const RunConfig& config);

}  // namespace thalia::store
