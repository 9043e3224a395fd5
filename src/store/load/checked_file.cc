#include "store/load/checked_file.h"

#include <algorithm>

#include "base/fail.h"
#include "io/file/posix_file.h"
#include "state/delta/replaced_top.h"
#include "store/run/sidecar.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

[[noreturn]] void fail_missing(const std::filesystem::path& path) {
  throw IntegrityError(ErrorCode::checksum_mismatch, "has no digest",
                       {.path = path.string(),
                        .value = "no " + sidecar_name(path.filename().string()),
                        .bound = "its SHA-256 beside it"});
}

}  // namespace

CheckedFile open_checked(const RunFiles& files, const std::filesystem::path& path,
                         const LoadOptions& options, MissingDigest missing,
                         const OtherDigests& others) {
  for (int tries = 0;; ++tries) {
    CheckedFile file{files.open(path, options.read.input.access)};
    if (options.check == LoadCheck::on_touch && missing == MissingDigest::warn) return file;
    std::vector<std::string> expected;
    if (const std::optional<std::string> beside = read_sidecar(files, path)) {
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
    // A file that is replaced between two looks at it is opened again.
    if (tries < state::kMostReplacements && !io::is_at_path(file.bytes->fd(), path)) continue;
    throw IntegrityError(ErrorCode::checksum_mismatch, "not the bytes that were saved",
                         {.path = path.string(), .value = actual, .bound = expected.front()});
  }
}

namespace {

ChainReader chain_over(const RunFiles& files, const std::filesystem::path& path,
                       const CheckedFile& top, const LoadOptions& options) {
  const bool is_checked = options.check == LoadCheck::digest;
  return with_path(path.string(), [&] {
    ChainReader chain = files.open_chain(top.bytes, options.read);
    if (!is_checked) return chain;
    if (!top.has_digest) chain.reader().verify_all(options.read.work.cancel);
    const std::vector<std::filesystem::path> paths = chain.paths();
    for (std::size_t i = 1; i < paths.size(); ++i) {
      const CheckedFile base = open_checked(files, paths[i], options, MissingDigest::warn);
      if (!base.has_digest)
        read_over(base.bytes, options.read).verify_all(options.read.work.cancel);
    }
    return chain;
  });
}

}  // namespace

ChainReader open_chain_checked(const RunFiles& files, const std::filesystem::path& path,
                               const LoadOptions& options, MissingDigest missing,
                               const OtherDigests& others) {
  return state::open_unreplaced(
      path, [&] { return open_checked(files, path, options, missing, others); },
      [](const CheckedFile& top) -> const io::FileBytes& { return *top.bytes; },
      [&](const CheckedFile& top) { return chain_over(files, path, top, options); });
}

}  // namespace thalia::store
