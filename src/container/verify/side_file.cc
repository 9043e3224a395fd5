// Opening a side file has checked every byte that it holds against its closing checksum. What is
// left: whether these are the bytes that a side file has to hold, which only the header and the
// tables in them can tell.
#include "container/verify/side_file.h"

#include <string>
#include <utility>

#include "base/fail.h"
#include "container/write/meta_extents.h"
#include "format/meta.h"

namespace thalia::container {
namespace {

// A reader calls this unsupported: it has no payloads to give. What these bytes are it cannot know.
[[noreturn]] void fail_missing_extent(const UnsupportedError& error) {
  fail_field(ErrorCode::inconsistent, "side_file", "extent", sizeof(format::MetaHeader),
             error.context().value, "in an extent: the texts and tables of the source");
}

}  // namespace

std::shared_ptr<const detail::OpenFile> open_side_file(std::shared_ptr<const io::FileBytes> file,
                                                       const ReadOptions& options) {
  try {
    return detail::OpenFile::over(std::move(file), options);
  } catch (const UnsupportedError& error) {
    if (error.context().section != "side_file") throw;  // another major version
    fail_missing_extent(error);
  }
}

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

}  // namespace thalia::container
