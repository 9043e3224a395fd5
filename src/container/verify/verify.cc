// Runs the checks of verify one after the other: structure, consistency, padding, payloads, and
// what lies around the file. A fault becomes a finding and the next check runs; only a stop, a
// passed limit and a file that cannot be opened end verify with an error. Each check relies on what
// the ones before found sound, and stays silent about what they reported. docs/format/verifying.md.
#include "thalia/verify.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "container/verify/consistency.h"
#include "container/verify/findings.h"
#include "container/verify/payloads.h"
#include "container/verify/structure.h"
#include "container/verify/verify_bytes.h"
#include "container/wrap/seek_table.h"
#include "container/write/meta_extents.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/meta.h"
#include "integrity/xxh64.h"
#include "io/file/file_bytes.h"

namespace thalia::container {
namespace {

// What opening a side file leaves unchecked.
//
// Opening a side file has checked every byte that it holds against its closing checksum. What is
// left: whether these are the bytes that a side file has to hold, which only the header and the
// tables in them can tell.

// A reader calls this unsupported: it has no payloads to give. What these bytes are it cannot know.
[[noreturn]] void fail_missing_extent(const UnsupportedError& error) {
  fail_field(ErrorCode::inconsistent, "side_file", "extent", sizeof(format::MetaHeader),
             error.context().value, "in an extent: the texts and tables of the source");
}

/// Opens the source of a side file as OpenFile::over() does. @throws the same, but FormatError
/// (inconsistent) if no extent holds what opening takes.
std::shared_ptr<const detail::OpenFile> open_side_file(std::shared_ptr<const io::FileBytes> file,
                                                       const ReadOptions& options) {
  try {
    return detail::OpenFile::over(std::move(file), options);
  } catch (const UnsupportedError& error) {
    if (error.context().section != "side_file") throw;  // another major version
    fail_missing_extent(error);
  }
}

/// Checks that the source is as long as the side file says, and that the extents hold all that they
/// have to.
void verify_side_file(const detail::OpenFile& file, Findings& findings) {
  const std::uint64_t length = file.mapping().bytes().size();
  findings.check([&] {
    if (length == file.header().file_length) return;
    fail_field(
        ErrorCode::inconsistent, "side_file", "source_length",
        offsetof(format::MetaHeader, source_length), std::to_string(length),
        fmt::format("file_length {} of the source", std::uint64_t{file.header().file_length}));
  });
  findings.check([&] {
    try {
      for (const format::Extent& extent : meta_extents(file))
        file.mapping().touch(extent.offset, extent.length);
    } catch (const UnsupportedError& error) {
      fail_missing_extent(error);
    }
  });
}

// What reading a wrapped file leaves unchecked. docs/format/format.md, "Wrappers".
//
// Checksums in a seek table are XXH64 of the contents, an addition of other writers that readers
// pass over. Contents are hashed if the reader has decoded them, so frames of any length take no
// memory here.

/// Checks the checksums in the seek table, if it has any, for every frame that decodes. Does
/// nothing to a file that is not wrapped.
/// @param contents of the frames, as the file was opened for reading.
void verify_frames(const io::FileBytes& file, const io::FileBytes& contents,
                   const VerifyOptions& options, Findings& findings) {
  const std::uint64_t size = file.bytes().size();
  const auto front = find_wrapper(file.fd(), file.path(), size);
  if (!front) return;
  const FramedFile source{file.fd(), file.path(), size, front->codec};
  const auto table = SeekTable::read(source, options.input.limits);
  if (!table || table->checksums().empty()) return;
  const ByteSpan all(contents.bytes().data() - contents.begin(),
                     contents.begin() + contents.bytes().size());
  if (table->content_bytes() != all.size()) return;  // the file is another by now
  parallel_for(table->size(), options.work.threads, [&](std::size_t i) {
    stop_if_cancelled(options.work.cancel);
    const SeekTable::Frame frame = table->frame(i);
    const std::uint64_t end = frame.content_offset + frame.content_length;
    try {
      // What comes before a window has been touched.
      const std::uint64_t begin = std::max(frame.content_offset, contents.begin());
      if (begin < end) contents.touch(begin - contents.begin(), end - begin);
    } catch (const FormatError&) {
      return;  // was reported
    }
    const auto found = static_cast<std::uint32_t>(
        integrity::xxh64(all.subspan(frame.content_offset, frame.content_length)));
    if (found == table->checksums()[i]) return;
    findings.add(
        {.code = ErrorCode::checksum_mismatch,
         .section = "wrapper",
         .field = "checksum",
         .region = {},
         .tensor = {},
         .offset = frame.stored_offset,
         .length = frame.stored_length,
         .message = fmt::format("frame {}: checksum {:#010x} of its content, expected {:#010x} as "
                                "the seek table says",
                                i, found, table->checksums()[i])});
  });
}

}  // namespace
}  // namespace thalia::container

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
       .message = "bytes after the end, the debris of an interrupted append; they are ignored"});
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
                      container::Findings& findings) {
  VerifyReport& report = findings.counts();
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
  return container::verify_input(path, options);
}

VerifyReport container::verify_input(const io::InputFile& input, const VerifyOptions& options) {
  return verify_bytes(
      with_path(input.path().native(), [&] { return input.bytes(options.input.access); }), options);
}

VerifyReport container::verify_bytes(const std::shared_ptr<const io::FileBytes>& bytes,
                                     const VerifyOptions& options) {
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
    if (file) verify_open_file(*file, options, findings);
    if (file && !options.quick)
      findings.check([&] { container::verify_frames(*bytes, file->mapping(), options, findings); });
  });
  findings.sort();
  return std::move(findings).finish();
}

}  // namespace thalia
