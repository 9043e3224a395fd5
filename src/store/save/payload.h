// Bytes that are no .thalia file, or a file that is copied as it is, brought to their name by the
// specification's steps. docs/format/store.md, "Saving".
#pragma once

#include <filesystem>
#include <functional>

#include "store/save/session.h"
#include "thalia/storage.h"

namespace thalia::store {

struct WrittenPayload {
  std::uint64_t bytes = 0;
  Digest256 sha256;
  double sync_seconds = 0;
  bool is_cloned = false;
};

/// A file that is open for reading; the path is for messages.
struct PayloadFile {
  int fd;
  const std::filesystem::path& path;
};

/// With its digest beside it. @param output SaveSession::output() of what is written into the run.
/// @throws UsageError (exists), IoError; what `produce` throws.
WrittenPayload write_payload(const SaveSession& session, const std::filesystem::path& path,
                             const ByteProducer& produce, const OutputOptions& output);
WrittenPayload write_payload(const SaveSession& session, const std::filesystem::path& path,
                             ByteSpan bytes, const OutputOptions& output);
/// @param from open for reading, whose path is for messages. @param expected in hexadecimal, empty:
/// any. @param announce called before anything that was there changes, with what will be. @throws
/// IntegrityError if the file has another digest.
WrittenPayload copy_payload(const SaveSession& session, const std::filesystem::path& path,
                            const PayloadFile& from, const OutputOptions& output,
                            const std::string& expected = {},
                            const std::function<void(const WrittenPayload&)>& announce = {});

}  // namespace thalia::store
