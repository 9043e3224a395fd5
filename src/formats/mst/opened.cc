#include "formats/mst/opened.h"

#include <fmt/format.h>

#include <utility>

#include "formats/mst/source_metadata.h"
#include "formats/source/list_names.h"
#include "thalia/formats/mithril.h"

namespace thalia::formats {
namespace mst {
namespace {

// Groups the bytes of these types only, where it groups any.
bool has_byte_planes(const MstFile& file, DType dtype) {
  return file.byte_grouping() &&
         (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
}

class OpenedMst final : public OpenedFile {
 public:
  explicit OpenedMst(MstFile file) : file_(std::move(file)) {
    facts_.version = std::to_string(file_.version());
    for (const MstTensor& tensor : file_.tensors()) {
      facts_.tensors.push_back({.name = tensor.name,
                                .layout = {.dtype = tensor.dtype, .shape = tensor.shape},
                                .offset = tensor.offset,
                                .stored_bytes = tensor.compressed_size,
                                .codecs = {Codec::zstd},
                                .byte_planes = has_byte_planes(file_, tensor.dtype)});
    }
    facts_.metadata = source_metadata_to_json(file_);
    for (const auto& [key, text] : file_.metadata())
      if (key == kEmbeddedMetadata) facts_.embedded = text;
    facts_.file_bytes = file_.file_bytes();
    if (!file_.unknown_members().empty()) {
      facts_.losses.push_back(
          fmt::format("members of the header: {}", list_names(file_.unknown_members())));
    }
    if (file_.has_other_bytes()) facts_.losses.emplace_back("bytes that are no tensor's");
  }

  Tensor read(std::size_t i) const override { return file_.read(file_.tensors()[i].name); }

 private:
  MstFile file_;
};

}  // namespace
}  // namespace mst

std::shared_ptr<const OpenedFile> open_mst_file(const io::InputFile& input,
                                                const OpenOptions& options) {
  const ReadOptions& read = options.chain.read;
  const auto& file = input.whole(read.input.access, read.work.cancel);
  return std::make_shared<mst::OpenedMst>(MstFile::from_bytes(
      {.bytes = file->bytes(), .owner = file}, input.path().string(), read.input.limits));
}

}  // namespace thalia::formats
