// Writes a copy of a file in which chosen tensors are quantized; all others are taken over as they
// are stored, compressed chunks included. The output is a new file that appears when it is
// complete. The plan borrows payloads: payloads_ keeps them until the commit, in a list so that
// they do not move.
#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/append/copied_tensor.h"
#include "container/file/open_file.h"
#include "container/read/reader_of.h"
#include "container/write/file_save.h"
#include "format/header.h"
#include "format/quantized.h"
#include "state/brain/stored_brain.h"
#include "state/precision/glob.h"
#include "state/quantize/quantizer.h"
#include "state/value/path_names.h"
#include "thalia/reader.h"
#include "thalia/state/brain.h"

namespace thalia {
namespace {

// The generation that the file has reached: the highest number and the lowest bound that its
// metadata or any quantized tensor tells. A file may have been put together from several.
state::LossyGeneration generation_of(const detail::OpenFile& file, const Value& metadata) {
  state::LossyGeneration found = state::lossy_generation_of(metadata);
  for (std::uint32_t r = 0; r < file.region_count(); ++r) {
    const RegionView region = file.region_view(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const auto quantization = quantization_of(region.tensor(t));
      if (!quantization) continue;
      found.number = std::max(found.number, quantization->lossy_generation);
      const std::uint16_t most = quantization->max_lossy_generations;
      found.most = found.most == 0 ? most : std::min(found.most, most);
    }
  }
  return found;
}

class FileQuantization {
 public:
  FileQuantization(const detail::OpenFile& file, const QuantizationOptions& options,
                   const QuantizeFileOptions& file_options)
      : file_(file),
        save_(file_options.save),
        limits_(file_options.input.limits),
        metadata_(metadata_of(file, limits_)),
        quantizer_(options, generation_of(file, metadata_), save_.work.threads),
        include_("include", options.include),
        exclude_("exclude", options.exclude) {}

  QuantizeFileResult run(const std::filesystem::path& output) {
    container::FileSave file(output, save_);
    file.plan() =
        container::copied_file(file_, [&](const RegionView& region, container::TensorPlan& tensor) {
          stop_if_cancelled(save_.work.cancel);
          replace(region, tensor);
        });
    include_.check();
    exclude_.check();
    // Nothing was lost if nothing was quantized: the generation stays.
    if (!quantizer_.reports().empty()) {
      state::set_lossy_generation(metadata_, quantizer_.generation());
      file.plan().metadata = state::metadata_text(metadata_);
    }
    const SaveResult saved = file.commit();
    QuantizeFileResult result{{.input_bytes = file_.mapping().bytes().size(),
                               .output_bytes = saved.file_bytes,
                               .tensors = saved.tensors},
                              quantizer_.reports(),
                              quantizer_.not_finite()};
    if (!result.quantized.empty()) {
      result.lossy_generation = quantizer_.generation().number;
      result.max_lossy_generations = quantizer_.generation().most;
    }
    return result;
  }

 private:
  static Value metadata_of(const detail::OpenFile& file, const ReadLimits& limits) {
    const format::Header& header = file.header();
    if (header.metadata_length == 0) return Value::object();
    return state::read_metadata(
        file.json({header.metadata_offset, header.metadata_length}, "metadata"), limits);
  }

  // A dense tensor that is chosen becomes a quantized one.
  void replace(const RegionView& region, container::TensorPlan& tensor) {
    const TensorSpec& spec = tensor.spec;
    const QuantizationTarget target{
        .path = state::path_in_region(region.name(), component_of_role(spec.role), spec.name),
        .region = region.name(),
        .name = spec.name,
        .role = spec.role,
        .dtype = spec.dtype,
        .shape = spec.shape};
    include_.see(state::names_of(target));
    exclude_.see(state::names_of(target));
    if (spec.encoding != Encoding::dense || !quantizer_.chooses(target)) return;
    auto payload = quantizer_.quantize(target, Tensor::from(region.at(spec.name), limits_));
    if (!payload) return;
    const state::QuantizedPayload& kept = payloads_.emplace_back(*std::move(payload));
    container::TensorPlan quantized;
    quantized.spec = spec;
    quantized.spec.encoding = Encoding::quantized;
    quantized.quantized = std::make_unique<format::QuantizedSideData>(kept.side);
    quantized.logical_length = kept.bytes.size();
    quantized.pieces = ByteSpan(kept.bytes);
    tensor = std::move(quantized);
  }

  const detail::OpenFile& file_;
  const SaveOptions& save_;
  const ReadLimits& limits_;
  Value metadata_;
  state::Quantizer quantizer_;
  state::PatternUse include_;
  state::PatternUse exclude_;
  std::list<state::QuantizedPayload> payloads_;  ///< that the plan borrows
};

}  // namespace

QuantizeFileResult quantize_file(const Reader& input, const std::filesystem::path& output,
                                 const QuantizationOptions& options,
                                 const QuantizeFileOptions& file_options) {
  const Stopwatch watch;
  const detail::OpenFile& file = container::file_of(input);
  QuantizeFileResult result =
      file.named([&] { return FileQuantization(file, options, file_options).run(output); });
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
