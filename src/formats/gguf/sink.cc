// Writes tensors of any format as a GGUF file. Blocks are u8 tensors that the metadata calls
// blocks; if that does not fit the tensor's shape, it is an u8 tensor like any other, which GGUF
// lacks.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/gguf/name_index.h"
#include "formats/gguf/opened.h"
#include "formats/gguf/source_metadata.h"
#include "formats/gguf/stored_tensor.h"
#include "formats/gguf/value_types.h"
#include "formats/gguf/write.h"
#include "formats/source/lost_metadata.h"
#include "thalia/formats/gguf.h"
#include "thalia/tensor.h"

namespace thalia::formats::gguf {
namespace {

bool holds_blocks(const TensorLayout& layout, const SourceTensorType& source) {
  // First: a shape that somebody has made up may have rows that are no blocks.
  return !ggml_type_facts(source.type)->dtype && ggml_bytes(source.type, source.shape) &&
         layout == stored_layout(source.type, source.shape);
}

GgufTensor described(const SinkTensor& tensor, const SourceTensorType* source) {
  const TensorLayout& layout = tensor.layout;
  if (layout.encoding != Encoding::dense) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "GGUF has dense tensors only",
                           {.field = "encoding",
                            .tensor = printable(tensor.name),
                            .value = std::string(encoding_name(layout.encoding))});
  }
  if (source != nullptr && holds_blocks(layout, *source))
    return {.name = tensor.name, .type = source->type, .shape = source->shape};
  if (const auto type = ggml_type_of(layout.dtype))
    return {.name = tensor.name, .type = *type, .shape = layout.shape};
  const std::string dtype(dtype_name(layout.dtype));
  throw UnsupportedDtypeError(dtype, "GGUF has no such dtype",
                              {.field = "dtype", .tensor = printable(tensor.name), .value = dtype});
}

// Those that the source metadata name in its order, then the others in theirs.
std::vector<std::size_t> file_order(
    const std::vector<std::optional<std::size_t>>& places_in_source) {
  std::vector<std::size_t> order(places_in_source.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return places_in_source[a].value_or(SIZE_MAX) < places_in_source[b].value_or(SIZE_MAX);
  });
  return order;
}

}  // namespace

std::uint64_t write_gguf(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit) {
  return with_path(output.native(), [&] {
    const GgufSourceMetadata source =
        source_metadata_from_json(input.metadata, options.limits.max_json_depth);
    const NameIndex names(source.tensors,
                          [](const auto& one) { return std::string_view(one.name); });
    std::vector<std::optional<std::size_t>> places;
    for (const SinkTensor& tensor : input.tensors) places.push_back(names.find(tensor.name));
    const std::vector<std::size_t> order = file_order(places);
    std::vector<GgufTensor> tensors;
    for (const std::size_t i : order)
      tensors.push_back(
          described(input.tensors[i], places[i] ? &source.tensors[*places[i]] : nullptr));
    const GgufPlan plan = plan_file(tensors, source.key_values, options.all_types);

    std::vector<std::string> losses;
    add_lost_metadata(losses, input, source.lost);
    if (options.announce) options.announce(losses);
    return write_file(output, plan, {.output = options.save.output, .work = options.save.work},
                      [&](std::size_t i, const PieceSink& sink) { emit(order[i], sink); });
  });
}

bool is_gguf_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth) {
  std::vector<SourceTensorType> tensors;
  for (const SinkTensor& tensor : input.tensors) {
    const auto type = ggml_type_of(tensor.layout.dtype);
    if (!type) return false;  // blocks, which no other format's metadata know
    tensors.push_back({tensor.name, *type, tensor.layout.shape});
  }
  const GgufSourceMetadata source = source_metadata_from_json(input.metadata, max_json_depth);
  return source_metadata_to_json(source.key_values, tensors) == metadata;
}

}  // namespace thalia::formats::gguf
