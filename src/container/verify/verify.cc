// Runs the checks of verify one after the other: structure, consistency, padding, payloads, and
// what lies around the file. A fault becomes a finding and the next check runs; only a stop, a
// passed limit and a file that cannot be opened end verify with an error. Each check relies on what
// the ones before found sound, and stays silent about what they reported. docs/format/verifying.md.
#include "thalia/verify.h"

#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "container/verify/consistency.h"
#include "container/verify/findings.h"
#include "container/verify/frames.h"
#include "container/verify/payloads.h"
#include "container/verify/side_file.h"
#include "container/verify/structure.h"
#include "container/verify/verify_bytes.h"
#include "format/constants.h"
#include "format/header.h"
#include "io/file/file_bytes.h"

namespace thalia {
namespace {

void note_debris(const detail::OpenFile& file, container::Findings& findings) {
  const std::uint64_t end = file.header().file_length;
  const std::uint64_t size = file.mapping().bytes().size();
  if (size <= end) return;
  findings.add(
      {.severity = Severity::warning,
       .code = ErrorCode::out_of_bounds,
       .section = "file",
       .offset = end,
       .length = size - end,
       .message = "bytes behind the end, the debris of an interrupted append; they are ignored"});
}

void note_oddities(const detail::OpenFile& file, container::Findings& findings) {
  const format::Header& header = file.header();
  if (header.compatible_features != 0) {
    findings.add(
        {.severity = Severity::warning,
         .code = ErrorCode::unsupported_feature,
         .section = "header",
         .field = "compatible_features",
         .offset = offsetof(format::Header, compatible_features),
         .message = fmt::format("compatible_features {:#010x}: what they mean is not known",
                                std::uint32_t{header.compatible_features})});
  }
  if (header.minor_version > format::kMinorVersion) {
    findings.add(
        {.severity = Severity::warning,
         .code = ErrorCode::unsupported_version,
         .section = "header",
         .field = "minor_version",
         .offset = offsetof(format::Header, minor_version),
         .message = fmt::format(
             "format version {}.{} is newer than this library's {}.{}; what it added is not seen",
             std::uint16_t{header.major_version}, std::uint16_t{header.minor_version},
             format::kMajorVersion, format::kMinorVersion)});
  }
  if ((header.flags & format::kFlagDelta) != 0 && file.mapping().before().empty()) {
    findings.add({.severity = Severity::warning,
                  .code = ErrorCode::inconsistent,
                  .section = "header",
                  .field = "flags",
                  .offset = offsetof(format::Header, flags),
                  .message = "a delta's container without the delta around it"});
  }
}

void verify_open_file(const detail::OpenFile& file, const VerifyOptions& options,
                      container::Findings& findings, VerifyReport& report) {
  report.regions = file.region_count();
  report.tensors = file.directory().tensor_count;
  if (file.mapping().backing() != io::Backing::partial) note_debris(file, findings);
  note_oddities(file, findings);
  // A side file was checked as a whole when it was opened, and has no payloads.
  if (file.mapping().backing() == io::Backing::partial) {
    container::verify_side_file(file, findings);
    report.bytes_checked = file.mapping().resident_bytes();
    return;
  }
  container::Structure structure;
  findings.check([&] { structure = container::verify_structure(file, findings); });
  findings.check([&] { container::verify_consistency(file, structure, findings); });
  findings.check([&] { container::verify_padding(file, structure, !options.quick, findings); });
  if (options.quick) {
    const format::Header& header = file.header();
    report.bytes_checked = 2 * sizeof(format::Header) + header.metadata_length +
                           header.directory_length + header.region_index_length;
    return;
  }
  findings.check([&] { container::verify_payloads(file, structure, options, findings); });
  // Decodes the frames that hold nothing but dead bytes or debris, which nothing has touched yet.
  if (file.mapping().backing() == io::Backing::decoded)
    findings.check([&] { file.mapping().touch(0, file.mapping().bytes().size()); });
  report.bytes_checked = file.header().file_length;
  report.tensors_compared = report.tensors;
}

}  // namespace

VerifyReport verify(const std::filesystem::path& path, const VerifyOptions& options) {
  return container::verify_bytes(
      with_path(path.native(), [&] { return io::FileBytes::open(path, options.input.access); }),
      options);
}

VerifyReport container::verify_bytes(const std::shared_ptr<const io::FileBytes>& bytes,
                                     const VerifyOptions& options) {
  const Stopwatch watch;
  VerifyReport report;
  container::Findings findings(options.max_findings);
  with_path(bytes->path().native(), [&] {
    // Reader checks are off: they would end verify at the first damage, and would hash what
    // payload_scan hashes anyway.
    const ReadOptions read{.input = {.limits = options.input.limits},
                           .verification = Verification::off,
                           .work = options.work};
    std::shared_ptr<const detail::OpenFile> file;
    findings.check([&] {
      auto contents = container::contents_of(bytes, read.input.limits);
      file = contents->backing() == io::Backing::partial
                 ? container::open_side_file(std::move(contents), read)
                 : detail::OpenFile::over(std::move(contents), read);
    });
    if (file) verify_open_file(*file, options, findings, report);
    if (file && !options.quick)
      findings.check([&] { container::verify_frames(*bytes, file->mapping(), options, findings); });
  });
  findings.deliver(report);
  report.seconds = watch.seconds();
  return report;
}

}  // namespace thalia
