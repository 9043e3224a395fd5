// A finding is noted before it is repaired, and a repair that fails is reported with it: an
// examination goes on to its end, whatever it finds. Other processes may prune meanwhile, so a file
// that is gone when it is read is no finding. Files are read last, together, so that progress is of
// all bytes.
#include "store/pool/examination.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "container/verify/verify_bytes.h"
#include "container/write/file_digest.h"
#include "io/output/temporary_file.h"
#include "io/system/process.h"
#include "store/run/sidecar.h"
#include "thalia/state/delta.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

bool is_gone(const RunFiles& files, const IoError& error, const std::filesystem::path& path) {
  return error.errno_value() == ENOENT && !files.has_file(path);
}

// What the file says of itself: the first of its errors; nullopt if it is whole, or nothing
// looks into it.
std::optional<std::string> own_failure(const FileCheck& file,
                                       const std::shared_ptr<const io::FileBytes>& bytes,
                                       const Work& work) {
  if (!file.is_thalia) return std::nullopt;
  VerifyOptions options;
  options.input.access = bytes->access();
  options.work = work;
  options.work.progress = {};
  const VerifyReport report = container::verify_bytes(bytes, options);
  for (const Finding& finding : report.findings)
    if (finding.severity == Severity::error) return finding.message;
  return std::nullopt;
}

struct Sidecar {
  std::optional<std::string> digest{};
  std::optional<std::string> failure{};  ///< it is no digest of the file
};

Sidecar sidecar_of(const RunFiles& files, const std::filesystem::path& path) {
  const auto failure = [](const Error& error) {
    return Sidecar{.failure = error.message().empty() ? error.details() : error.message()};
  };
  try {
    return {.digest = read_sidecar(files, path)};
  } catch (const FormatError& error) {
    return failure(error);
  } catch (const UsageError& error) {  // a link, or no file
    return failure(error);
  }
}

}  // namespace

void Examination::find(Severity severity, std::string kind, const std::filesystem::path& path,
                       std::string message) {
  report_.findings.push_back(
      {.severity = severity, .kind = std::move(kind), .path = path, .message = std::move(message)});
}

void Examination::find(Severity severity, std::string kind, const std::filesystem::path& path,
                       std::string message, const std::function<void(const SaveSession&)>& repair) {
  find(severity, std::move(kind), path, std::move(message));
  StoreFinding& finding = report_.findings.back();
  finding.can_be_repaired = true;
  if (session_ == nullptr) return;
  try {
    repair(*session_);
    finding.is_repaired = true;
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    finding.message += std::string("; repairing failed: ") + error.what();
  }
}

void Examination::find_useless(std::string kind, const std::filesystem::path& path,
                               std::string message) {
  // A process that saves may be about to give it its use.
  if (session_ != nullptr && !may_sweep_) {
    find(Severity::warning, std::move(kind), path, std::move(message));
    return;
  }
  find(Severity::warning, std::move(kind), path, std::move(message),
       [&](const SaveSession& session) {
         const io::Folder folder = session.files().folder(path.parent_path());
         folder.remove(path.filename().string());
         if (session.syncs_folders()) folder.sync();
       });
}

void Examination::find_temporaries(const std::filesystem::path& path) {
  const std::optional<io::Folder> folder = run_.files().find_folder(path);
  if (!folder) return;
  for (const io::FolderEntry& found : folder->entries()) {
    const auto process = io::temporary_process(found.name);
    if (!process || (session_ != nullptr && *process == io::process_id())) continue;
    find_useless("temporary", path / found.name,
                 fmt::format("process {} did not finish it", *process));
  }
}

void Examination::check(FileCheck file) {
  if (file.is_counted) ++report_.checkpoints;
  if (options_.quick) {
    check_quickly(file);
  } else {
    files_.push_back(std::move(file));
  }
}

void Examination::check_quickly(const FileCheck& file) {
  const Sidecar beside = sidecar_of(run_.files(), file.path);
  if (beside.failure) {
    find(Severity::error, "bad_digest", file.path, *beside.failure);
  } else if (!beside.digest) {
    find(file.is_gate ? Severity::error : Severity::warning, "missing_digest", file.path,
         "there is no digest beside it");
  }
}

void Examination::check_whole(const FileCheck& file) {
  std::optional<std::string> failure;
  std::string actual;
  try {
    const auto bytes = run_.files().open(file.path);
    actual = hex(digest_of(*bytes, options_.work.cancel).bytes);
    report_.bytes_checked += bytes->bytes().size();
    failure = own_failure(file, bytes, options_.work);
  } catch (const IoError& error) {
    if (is_gone(run_.files(), error, file.path)) return;  // pruned meanwhile
    failure = error.what();
  } catch (const FormatError& error) {
    failure = error.what();
  } catch (const UsageError& error) {  // something took its place
    failure = error.what();
  }
  const Sidecar beside = sidecar_of(run_.files(), file.path);
  const bool is_same = beside.digest == actual;
  if (failure || (beside.digest && !is_same && !file.is_thalia)) {
    find(Severity::error, "damaged", file.path,
         failure ? *failure : "its bytes are not those that the digest beside it is of");
    return;
  }
  if (file.is_thalia) check_bases(file.path);
  if (is_same) return;
  if (beside.digest) {
    find(Severity::error, "bad_digest", file.path,
         "the digest beside it is of other bytes, though the file passes its own checks");
    return;
  }
  const std::string kind = beside.failure ? "bad_digest" : "missing_digest";
  const std::string what = beside.failure ? *beside.failure : "there is no digest beside it";
  const Severity severity = beside.failure || file.is_gate ? Severity::error : Severity::warning;
  if (!file.is_thalia) {
    find(severity, kind, file.path, what + ", and nothing else vouches for it");
    return;
  }
  find(severity, kind, file.path, what + ", and the file passes its own checks",
       [&](const SaveSession& session) {
         // The digest has to be that of the bytes that were checked; others may be there by now.
         const Digest256 digest = digest_of(*session.files().open(file.path), options_.work.cancel);
         if (hex(digest.bytes) != actual)
           throw IntegrityError(ErrorCode::checksum_mismatch, "it has changed meanwhile",
                                {.path = file.path.string()});
         container::write_sha256_file(file.path, digest, session.output());
       });
}

void Examination::check_bases(const std::filesystem::path& path) {
  try {
    run_.files().open_chain(path, options_.work.cancel);
  } catch (const MissingBaseError& error) {
    // Pruned meanwhile, both go.
    if (run_.files().has_file(path)) find(Severity::error, "missing_base", path, error.what());
  } catch (const IntegrityError& error) {
    // What lies there is another file.
    find(Severity::error, "missing_base", path, error.what());
  } catch (const IoError& error) {
    if (!is_gone(run_.files(), error, path)) find(Severity::error, "damaged", path, error.what());
  } catch (const FormatError& error) {
    find(Severity::error, "damaged", path, error.what());
  }
}

StoreReport Examination::finish() {
  std::uint64_t total = 0, done = 0;
  for (const FileCheck& file : files_) total += file.bytes;
  for (const FileCheck& file : files_) {
    stop_if_cancelled(options_.work.cancel);
    if (options_.work.progress) options_.work.progress(done, total);
    check_whole(file);
    done += file.bytes;
  }
  if (options_.work.progress) options_.work.progress(total, total);
  return std::move(report_);
}

}  // namespace thalia::store
