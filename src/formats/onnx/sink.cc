#include "formats/onnx/sink.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/onnx/plan.h"
#include "formats/onnx/source_metadata.h"
#include "formats/onnx/wire.h"
#include "formats/onnx/write.h"
#include "formats/source/list_names.h"

namespace thalia::formats {
namespace onnx {
namespace {

// Tensors as the model had them that they came from; those that it had not are last.
std::vector<std::size_t> file_order(const std::vector<SinkTensor>& tensors,
                                    const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (const std::string& name : names) ranks.emplace(name, ranks.size());
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    const auto found = ranks.find(tensors[i].name);
    return found == ranks.end() ? ranks.size() : found->second;
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

}  // namespace
}  // namespace onnx

std::uint64_t write_onnx(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit) {
  onnx::OnnxSourceMetadata source =
      onnx::source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  // The model may be of a version that this library does not know.
  onnx::correct_versions(source.model);
  if (input.training_steps) {
    const bool is_taken = std::ranges::any_of(
        source.metadata, [](const auto& one) { return one.first == onnx::kTrainingSteps; });
    if (is_taken) {
      source.losses.emplace_back("the count of training steps, whose key is taken");
    } else {
      source.metadata.emplace_back(onnx::kTrainingSteps, std::to_string(*input.training_steps));
    }
  }
  std::vector<std::string> rows;
  for (const SinkTensor& tensor : input.tensors)
    if (tensor.layout.encoding == Encoding::csr) rows.push_back(tensor.name);
  if (!rows.empty())
    source.losses.push_back("the encoding csr, in place of which coo is written: " +
                            list_names(rows));
  const std::vector<std::size_t> order = onnx::file_order(input.tensors, source.order);
  std::vector<SinkTensor> tensors;
  for (const std::size_t i : order) tensors.push_back(input.tensors[i]);
  return onnx::write_model(
      output, tensors, source.metadata, std::move(source.model),
      {.external_data = source.external_data ? std::optional(true) : std::nullopt,
       .output = options.save.output,
       .sources = options.sources,
       .work = options.save.work},
      [&] {
        if (options.announce) options.announce(source.losses);
      },
      [&](std::size_t i, const PieceSink& sink) { emit(order[i], sink); });
}

bool is_onnx_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth) {
  const onnx::OnnxSourceMetadata found = onnx::source_metadata_from_json(metadata, max_json_depth);
  onnx::OnnxSourceMetadata written =
      onnx::source_metadata_from_json(input.metadata, max_json_depth);
  // Another version of this library may have written it.
  if (found.model.producer_name == written.model.producer_name)
    written.model.producer_version = found.model.producer_version;
  onnx::check_input(input.tensors, written.metadata, written.model);
  const onnx::OnnxPlan plan = onnx::make_plan(input.tensors, written.metadata, written.model, {});
  return found.model == written.model && found.metadata == written.metadata &&
         found.external_data == (plan.model_bytes > onnx::kMostMessageBytes);
}

}  // namespace thalia::formats
