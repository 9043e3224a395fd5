// Each tensor of a source has a name of its own: of entries with one name the last is shown, the
// one that a look-up finds, and the others are named as lost.
#include "formats/gptrs/opened.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "formats/gptrs/parse.h"
#include "formats/gptrs/source_metadata.h"
#include "formats/source/list_names.h"

namespace thalia::formats::gptrs {
namespace {

// Where the first payload may be: after an index without bytes that mean nothing.
std::uint64_t front_bytes(const GptrsFile& file) {
  const bool is_checkpoint = file.format() == GptrsFormat::checkpoint;
  std::uint64_t bytes = kCheckpointMagic.size() + 4 + 4 + 4;  // version, index_len, tensor_count
  if (is_checkpoint) bytes += 4 + file.config_text().size();
  for (const GptrsTensor& tensor : file.tensors())
    bytes +=
        kLeastEntry + (is_checkpoint ? kIdBytes : 0) + tensor.name.size() + 8 * tensor.shape.rank();
  return bytes;
}

// After index and payloads, and between them. In version 1 entries are there.
bool has_other_bytes(const GptrsFile& file) {
  if (file.version() == 1) {
    if (file.tensors().empty()) return false;
    return file.tensors().back().offset + file.tensors().back().stored_bytes < file.file_bytes();
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
  for (const GptrsTensor& tensor : file.tensors()) {
    const bool fits = tensor.offset <= file.file_bytes() &&
                      tensor.stored_bytes <= file.file_bytes() - tensor.offset;
    if (fits && tensor.stored_bytes > 0) extents.emplace_back(tensor.offset, tensor.stored_bytes);
  }
  std::sort(extents.begin(), extents.end());
  std::uint64_t end = front_bytes(file);
  for (const auto& [offset, length] : extents) {
    if (offset > end) return true;
    end = std::max(end, offset + length);
  }
  return end < file.file_bytes();
}

class OpenedGptrs final : public OpenedFile {
 public:
  explicit OpenedGptrs(GptrsFile file) : file_(std::move(file)) {
    facts_.version = std::to_string(file_.version());
    facts_.file_bytes = file_.file_bytes();
    facts_.metadata = source_metadata_to_json(source_metadata_of(file_));
    std::vector<std::string> hidden;
    for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
      const GptrsTensor& tensor = file_.tensors()[i];
      if (file_.find(tensor.name) != &tensor) {
        hidden.push_back(tensor.name);
        continue;
      }
      entries_.push_back(i);
      facts_.tensors.push_back({.name = tensor.name,
                                .layout = {.dtype = tensor.dtype, .shape = tensor.shape},
                                .offset = tensor.offset,
                                .stored_bytes = tensor.stored_bytes,
                                .in_place = true});
    }
    // A config that was made of another format's metadata is them.
    if (file_.format() == GptrsFormat::checkpoint && file_.model_config().kind == "thalia")
      facts_.embedded = fmt::format(R"({{"metadata":{}}})", file_.model_config().config);
    if (!hidden.empty()) {
      facts_.losses.push_back(
          fmt::format("earlier tensors of a name that occurs again: {}", list_names(hidden)));
    }
    if (has_other_bytes(file_)) facts_.losses.emplace_back("bytes that are no tensor's");
  }

  Tensor read(std::size_t i) const override { return file_.read_entry(entries_.at(i)); }

 private:
  GptrsFile file_;
  std::vector<std::size_t> entries_;  ///< of facts().tensors, in the file's index
};

}  // namespace
}  // namespace thalia::formats::gptrs

namespace thalia::formats {

std::shared_ptr<const OpenedFile> opened_gptrs(GptrsFile file) {
  return std::make_shared<const gptrs::OpenedGptrs>(std::move(file));
}

std::shared_ptr<const OpenedFile> open_gptrs_file(const io::InputFile& input,
                                                  const OpenOptions& options) {
  const ReadOptions& read = options.chain.read;
  const auto& file = input.whole(read.input.access, read.work.cancel);
  return opened_gptrs(GptrsFile::from_bytes({.bytes = file->bytes(), .owner = file},
                                            input.path().string(),
                                            {.input = read.input,
                                             .strict = !read.input.legacy,
                                             .version_1 = read.input.legacy,
                                             .untagged_config = read.input.legacy,
                                             .work = read.work}));
}

}  // namespace thalia::formats
