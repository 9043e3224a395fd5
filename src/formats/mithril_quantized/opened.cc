#include "formats/mithril_quantized/opened.h"

#include <utility>

#include "base/fail.h"
#include "formats/mithril_quantized/parts.h"
#include "formats/mithril_quantized/source_metadata.h"
#include "io/file/file_bytes.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/formats/mithril.h"

namespace thalia::formats {
namespace mithril_quantized {
namespace {

// A file is one frame, so all of it is decoded when it is opened. Numbers count beside what is
// held.
class OpenedMithril final : public OpenedFile {
 public:
  OpenedMithril(ByteSpan file, const OpenOptions& options)
      : limits_(options.chain.read.input.limits), file_bytes_(file.size()) {
    io::MemoryBudget budget(limits_, file.size());
    MithrilQuantized tensor = decode(file, limits_, budget);
    if (options.dequantize) {
      add("tensor", dequantize(tensor, budget), {});
    } else {
      const auto copied = [&](DType dtype, const auto& elements) {
        return state::counted_copy(budget, "content", {.dtype = dtype, .shape = {elements.size()}},
                                   std::as_bytes(std::span(elements)));
      };
      add(kCodes, tensor.codes, mithril_method_name(tensor.method));
      add(kScales, copied(DType::f32, tensor.scales), {});
      if (tensor.zero_points) add(kZeroPoints, copied(DType::i8, *tensor.zero_points), {});
    }
    facts_.metadata = source_metadata_to_json({.method = tensor.method,
                                               .original_dtype = tensor.original_dtype,
                                               .group_size = tensor.group_size,
                                               .level = mithril_quantized_level(file)});
    facts_.file_bytes = file.size();
    decoded_ = std::move(tensor);
  }

  Tensor read(std::size_t i) const override { return tensors_[i]; }
  Tensor restored(std::size_t i) const override {
    if (facts_.tensors[i].type.empty()) return read(i);
    io::MemoryBudget budget(limits_, file_bytes_);
    for (const Tensor& tensor : tensors_) budget.take("content", tensor.bytes().size());
    return dequantize(decoded_, budget);
  }

 private:
  void add(std::string_view name, Tensor tensor, std::string_view type) {
    facts_.tensors.push_back(
        {.name = std::string(name), .layout = tensor.layout(), .type = std::string(type)});
    tensors_.push_back(std::move(tensor));
  }

  ReadLimits limits_;
  std::uint64_t file_bytes_;  ///< of the file
  MithrilQuantized decoded_;
  std::vector<Tensor> tensors_;
};

}  // namespace
}  // namespace mithril_quantized

std::shared_ptr<const OpenedFile> open_mithril_quantized_file(const io::InputFile& input,
                                                              const OpenOptions& options) {
  const ReadOptions& read = options.chain.read;
  const auto& file = input.whole(read.input.access, read.work.cancel);
  return with_path(input.path().native(), [&] {
    return std::make_shared<mithril_quantized::OpenedMithril>(file->bytes(), options);
  });
}

}  // namespace thalia::formats
