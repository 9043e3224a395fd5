// Reads any text as the index of a model. What is accepted names files of one folder, each tensor
// once, and is planned and written again as it was.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors/index.h"
#include "formats/safetensors/kept_header.h"
#include "formats/safetensors/shard_plan.h"
#include "formats/safetensors/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace safetensors_index_target {

using namespace formats::safetensors;

constexpr std::uint64_t kMostFiles = 1000;

void check_index(const ModelIndex& index) {
  std::string_view before;
  for (const std::string& file : index.files) {
    FUZZ_REQUIRE(is_plain_name(file) && file.find('/') == std::string::npos);
    FUZZ_REQUIRE(before < file);
    before = file;
  }
  for (const IndexedTensor& tensor : index.tensors) FUZZ_REQUIRE(tensor.file < index.files.size());
}

void check_written(const ModelIndex& index) {
  std::vector<std::pair<std::string, std::string>> weights;
  for (const IndexedTensor& tensor : index.tensors)
    weights.emplace_back(tensor.name, index.files[tensor.file]);
  const ModelIndex again = parse_index(write_index(weights, 7), {}, kMostFiles);
  FUZZ_REQUIRE(again.files == index.files && again.total_size == 7u);
  std::vector<std::pair<std::string, std::string>> read;
  for (const IndexedTensor& tensor : again.tensors)
    read.emplace_back(tensor.name, again.files[tensor.file]);
  std::ranges::sort(weights);
  FUZZ_REQUIRE(read == weights);
}

void check_planned(const ModelIndex& index, std::string_view text) {
  std::vector<NamedArray> tensors;
  for (const IndexedTensor& tensor : index.tensors)
    tensors.push_back({.name = tensor.name, .dtype = DType::u8, .shape = {1}, .bytes = {}});
  const std::string json = formats::source_metadata_to_json(
      {.metadata = {},
       .other_keys = {},
       .model = SourceModel{.index_name = "model.safetensors.index.json",
                            .index_text = std::string(text),
                            .tensor_bytes = tensors.size()}});
  const auto source = formats::source_metadata_from_json(json, 64);
  FUZZ_REQUIRE(source.found && source.model && source.model->index_text == text);
  try {
    const auto plan =
        plan_kept_model("/nowhere/model", tensors, source, {.max_header_bytes = 100'000'000});
    FUZZ_REQUIRE(plan.has_value() == !tensors.empty());
    if (!plan) return;
    FUZZ_REQUIRE(plan->index_text == text && plan->data_bytes == tensors.size());
    FUZZ_REQUIRE(plan->files.size() == index.files.size());
  } catch (const UsageError&) {  // a tensor "__metadata__"
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ModelIndex index = parse_index(text, {}, kMostFiles);
    check_index(index);
    check_written(index);
    check_planned(index, text);
  } catch (const FormatError&) {
  }
  // As metadata of a .thalia file, any of it may be source metadata.
  try {
    const auto source = formats::source_metadata_from_json(text, 64);
    const std::vector<NamedArray> tensors{
        {.name = "a", .dtype = DType::f32, .shape = {2}, .bytes = {}}};
    const auto plan =
        plan_kept_model("/nowhere/model", tensors, source, {.max_header_bytes = 1'000'000});
    if (plan) FUZZ_REQUIRE(plan->data_bytes == 8 && plan->files.size() == 1);
    const auto header = kept_or_new_header(source.header, tensors, source.metadata, 1'000'000, {});
    FUZZ_REQUIRE(header.data_bytes == 8 && header.order.size() == 1);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace safetensors_index_target
}  // namespace

FUZZ_TARGET(safetensors_index)
