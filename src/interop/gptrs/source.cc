// Each tensor of a source has a name of its own: of entries with one name the last is shown, the
// one that a look-up finds, and the others are named as lost.
#include "interop/gptrs/source.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "interop/gptrs/origin.h"
#include "interop/shared/list_names.h"

namespace thalia::interop::gptrs {
namespace {

class GptrsSource final : public TensorSource {
 public:
  explicit GptrsSource(GptrsFile file) : file_(std::move(file)) {
    facts_.version = std::to_string(file_.version());
    facts_.file_bytes = file_.file_bytes();
    facts_.metadata = origin_to_json(origin_of(file_));
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
      facts_.carried = fmt::format(R"({{"metadata":{}}})", file_.model_config().config);
    if (!hidden.empty()) {
      facts_.losses.push_back(
          fmt::format("earlier tensors of a name that stands there again: {}", list_names(hidden)));
    }
  }

  Tensor read(std::size_t i) const override { return file_.read_entry(entries_.at(i)); }

 private:
  GptrsFile file_;
  std::vector<std::size_t> entries_;  ///< of facts().tensors, in the file's index
};

}  // namespace
}  // namespace thalia::interop::gptrs

namespace thalia::interop {

std::shared_ptr<const TensorSource> gptrs_source(GptrsFile file) {
  return std::make_shared<const gptrs::GptrsSource>(std::move(file));
}

std::shared_ptr<const TensorSource> open_gptrs_source(const std::filesystem::path& path,
                                                      const SourceOptions& options) {
  return gptrs_source(GptrsFile::open(path, {.input = options.read.input,
                                             .strict = !options.legacy,
                                             .version_1 = options.legacy,
                                             .untagged_config = options.legacy,
                                             .work = options.read.work}));
}

}  // namespace thalia::interop
