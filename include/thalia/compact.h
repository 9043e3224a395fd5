// A file without what appends left behind. docs/format/writing.md, "Compaction".
#pragma once

#include <cstdint>
#include <filesystem>

#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia {

struct CompactOptions {
  OutputOptions output{};
  /// Wait while an appender or recover() holds the file; else that is an IoError.
  bool wait = false;
  InputOptions input{};
  Work work{};  ///< all but progress
};

struct CompactResult {
  std::uint64_t input_bytes = 0;  ///< of the old file, debris included
  std::uint64_t output_bytes = 0;
  std::uint32_t regions = 0;
  std::uint32_t tensors = 0;
  Digest256 closing_checksum;
  double seconds = 0;
};

/// Writes the file anew, tensor by tensor as they are stored, and puts it in the old one's place as
/// a save does: a crash leaves the old file or the new one, and open readers keep the old. The new
/// file is of generation 1 and has an identity of its own; timestamp, training steps, texts,
/// checksum type and content hashes are the old one's. Every byte is verified on the way.
///
/// Holds the file's lock, so that no append is lost. A save to the same path takes no lock: if one
/// ends meanwhile, compact() replaces its file.
/// @throws IoError, with EWOULDBLOCK where the file is locked; IntegrityError, FormatError;
/// UnsupportedError for a delta, an encoding that needs a base, and what a newer version wrote;
/// CancelledError. The old file is in place then.
CompactResult compact(const std::filesystem::path& path, const CompactOptions& options = {});

/// The same into another file, which is replaced if there is one; `input` stays as it is.
CompactResult compact(const std::filesystem::path& input, const std::filesystem::path& output,
                      const CompactOptions& options = {});

}  // namespace thalia
