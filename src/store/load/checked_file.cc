#include "store/load/checked_file.h"

#include <algorithm>

#include "base/fail.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "io/posix_file.h"
#include "model/delta/access.h"
#include "store/run/sidecar.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

// A file that is replaced between two looks at it is opened again.
constexpr int kMostReplacements = 10;

[[noreturn]] void fail_missing(const std::filesystem::path& path) {
  throw IntegrityError(ErrorCode::checksum_mismatch, "has no digest",
                       {.path = path.string(),
                        .value = "no " + sidecar_name(path.filename().string()),
                        .bound = "its SHA-256 beside it"});
}

}  // namespace

CheckedFile open_checked(const std::filesystem::path& path, const LoadOptions& options,
                         MissingDigest missing, const OtherDigests& others) {
  for (int tries = 0;; ++tries) {
    CheckedFile file{io::FileBytes::open(path, options.read.input.access)};
    if (options.check == LoadCheck::on_touch && missing == MissingDigest::warn) return file;
    std::vector<std::string> expected;
    if (const std::optional<std::string> beside = read_sidecar(path)) {
      expected.push_back(*beside);
    } else if (others) {
      expected = others();
    }
    if (expected.empty()) {
      if (missing == MissingDigest::refuse) fail_missing(path);
      if (options.on_warning)
        options.on_warning(
            fmt::format("{} has no digest beside it, and is held against its own "
                        "checksums",
                        printable(path.string())));
      return file;
    }
    file.has_digest = true;
    const std::string actual = hex(digest_of(*file.bytes, options.read.work.cancel).bytes);
    if (std::ranges::find(expected, actual) != expected.end()) return file;
    if (tries < kMostReplacements && !io::is_at_path(file.bytes->fd(), path)) continue;
    throw IntegrityError(ErrorCode::checksum_mismatch, "not the bytes that were saved",
                         {.path = path.string(), .value = actual, .bound = expected.front()});
  }
}

ChainReader open_chain_checked(const std::filesystem::path& path, const LoadOptions& options,
                               MissingDigest missing, const OtherDigests& others) {
  const CheckedFile top = open_checked(path, options, missing, others);
  const bool is_checked = options.check == LoadCheck::digest;
  return with_path(path.string(), [&] {
    const Reader reader = DeltaAccess::reader_over(detail::OpenFile::over(
        container::contents_of(top.bytes, options.read.input.limits), options.read));
    if (is_checked && !top.has_digest) reader.verify_all(options.read.work.cancel);
    ChainReader chain = ChainReader::open(reader, {.read = options.read});
    if (!is_checked) return chain;
    const std::vector<std::filesystem::path> paths = chain.paths();
    for (std::size_t i = 1; i < paths.size(); ++i) {
      const CheckedFile base = open_checked(paths[i], options, MissingDigest::warn);
      if (!base.has_digest)
        Reader::open(paths[i], options.read).verify_all(options.read.work.cancel);
    }
    return chain;
  });
}

}  // namespace thalia::store
