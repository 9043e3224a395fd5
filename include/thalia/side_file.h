// Side files (.thalia.meta): what a .thalia file says about itself, without payloads, for programs
// that index many checkpoints. docs/format/format.md, "Side files".
//
// Reader::open() opens one like the file it came from: names, shapes, texts, totals and checksums
// are there. Whatever needs a payload throws UnsupportedError (unsupported_feature).
#pragma once

#include <cstdint>
#include <filesystem>

#include "thalia/options.h"
#include "thalia/result.h"

namespace thalia {

struct MetadataFileOptions {
  OutputOptions output{};
  InputOptions input{};
  Work work{};  ///< threads and the stop
};

/// `input_bytes` are those of the .thalia file, unwrapped and without debris.
struct MetadataFileResult : RewriteResult {
  std::uint32_t regions = 0;
};

/// Writes the side file of `source`, which may be plain, wrapped or a side file itself. The target
/// appears whole or not at all. What is taken over is verified on the way.
///
/// @throws as Reader::open(); IoError; UsageError (bad_argument) for a target that is the source;
/// UnsupportedError for a delta.
MetadataFileResult write_metadata_file(const std::filesystem::path& source,
                                       const std::filesystem::path& target,
                                       const MetadataFileOptions& options = {});

/// True where a file begins as a side file does. @throws IoError.
bool is_metadata_file(const std::filesystem::path& path);

}  // namespace thalia
