// Checks what a caller may get wrong; the frames and the file are FrameFile's. A call that fails
// after its checks ends the writer (Steps), so no file lacks a tensor.
#include <string>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/steps.h"
#include "base/utf8.h"
#include "formats/mst/frame_file.h"
#include "formats/mst/parse.h"
#include "thalia/formats/mithril.h"

namespace thalia {
namespace {

MstWriteOptions with_checked_metadata(MstWriteOptions options) {
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : options.metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value))
      fail_argument(ErrorCode::bad_argument, "metadata", printable(key), "UTF-8");
    if (!keys.insert(key).second)
      fail_argument(ErrorCode::duplicate, "metadata", printable(key), "keys that differ");
  }
  return options;
}

}  // namespace

struct MstWriter::Impl {
  Impl(const std::filesystem::path& to, const MstWriteOptions& options)
      : path(to.string()), file(to, options), steps("the file", path) {}

  std::string path;
  formats::mst::FrameFile file;
  Steps steps;
  std::unordered_set<std::string> names;
};

MstWriter::MstWriter(const std::filesystem::path& path, MstWriteOptions options)
    : impl_(std::make_unique<Impl>(path, with_checked_metadata(std::move(options)))) {}

MstWriter::~MstWriter() = default;
MstWriter::MstWriter(MstWriter&&) noexcept = default;
MstWriter& MstWriter::operator=(MstWriter&&) noexcept = default;

void MstWriter::add(std::string name, const Tensor& tensor) {
  Impl& impl = *impl_;
  const auto refuse = [&](ErrorCode code, std::string value, std::string bound) {
    throw UsageError(code, {},
                     {.path = impl.path,
                      .field = "name",
                      .tensor = printable(name),
                      .value = std::move(value),
                      .bound = std::move(bound)});
  };
  impl.steps.require_open();
  if (!is_valid_utf8(name)) refuse(ErrorCode::bad_argument, "other bytes", "UTF-8");
  if (impl.names.contains(name)) refuse(ErrorCode::duplicate, "added before", "");
  with_path(impl.path, [&] { formats::mst::check_layout(name, tensor.layout()); });
  impl.steps.run([&] {
    impl.names.insert(name);
    impl.file.begin(std::move(name), tensor.layout());
    impl.file.write(tensor.bytes());
    impl.file.end();
  });
}

std::uint64_t MstWriter::commit() {
  Impl& impl = *impl_;
  return impl.steps.finish([&] { return impl.file.commit(formats::kMstVersion); });
}

}  // namespace thalia
