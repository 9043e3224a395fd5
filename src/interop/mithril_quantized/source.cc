#include "interop/mithril_quantized/source.h"

#include <utility>

#include "base/fail.h"
#include "interop/mithril_quantized/origin.h"
#include "io/file_bytes.h"
#include "thalia/formats/mithril_quantized.h"

namespace thalia::interop {
namespace mithril_quantized {
namespace {

// A file is one frame, so all of it is decoded when it is opened.
class Source final : public SourceFile {
 public:
  Source(const MithrilQuantized& tensor, int level, std::uint64_t file_bytes, bool dequantize) {
    if (dequantize) {
      add("tensor", tensor.dequantized(), {});
    } else {
      add(kCodes, tensor.codes, mithril_method_name(tensor.method));
      add(kScales, Tensor::copy_of<float>({tensor.scales.size()}, tensor.scales), {});
      if (tensor.zero_points) {
        add(kZeroPoints,
            Tensor::copy_of(DType::i8, {tensor.zero_points->size()},
                            std::as_bytes(std::span(*tensor.zero_points))),
            {});
      }
    }
    facts_.metadata = origin_to_json({.method = tensor.method,
                                      .original_dtype = tensor.original_dtype,
                                      .group_size = tensor.group_size,
                                      .level = level});
    facts_.file_bytes = file_bytes;
  }

  Tensor read(std::size_t i) const override { return tensors_[i]; }

 private:
  void add(std::string_view name, Tensor tensor, std::string_view type) {
    facts_.tensors.push_back(
        {.name = std::string(name), .layout = tensor.layout(), .type = std::string(type)});
    tensors_.push_back(std::move(tensor));
  }

  std::vector<Tensor> tensors_;
};

}  // namespace
}  // namespace mithril_quantized

std::shared_ptr<const SourceFile> open_mithril_quantized_source(const std::filesystem::path& path,
                                                                const SourceOptions& options) {
  const InputOptions& input = options.read.input;
  const auto file = io::FileBytes::open_whole(path, input.access, options.read.work.cancel);
  return with_path(path.native(), [&] {
    return std::make_shared<mithril_quantized::Source>(
        decode_mithril_quantized(file->bytes(), input.limits),
        mithril_quantized_level(file->bytes()), file->bytes().size(), options.dequantize);
  });
}

}  // namespace thalia::interop
