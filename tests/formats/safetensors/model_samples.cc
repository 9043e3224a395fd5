#include "formats/safetensors/model_samples.h"

#include <utility>

#include "formats/safetensors/opened.h"
#include "formats/safetensors/sink.h"
#include "thalia/formats/safetensors.h"

namespace thalia::test {

std::string index_text(const std::vector<std::pair<std::string, std::string>>& weights,
                       std::uint64_t total_size) {
  std::string text = "{\"metadata\":{\"total_size\":" + std::to_string(total_size) + "},";
  text += "\"weight_map\":{";
  for (std::size_t i = 0; i < weights.size(); ++i) {
    text += (i == 0 ? "\"" : ",\"") + weights[i].first + "\":\"" + weights[i].second + "\"";
  }
  return text + "}}";
}

std::vector<OwnedTensor> model_tensors() {
  return {make_tensor("a", DType::f32, {2}), make_tensor("b", DType::f32, {2, 2}),
          make_tensor("c", DType::u8, {4}), make_tensor("d", DType::bf16, {1})};
}

void write_model(const std::filesystem::path& folder) {
  const auto tensors = model_tensors();
  std::filesystem::create_directories(folder);
  save_safetensors(folder / "model-00001-of-00002.safetensors", borrow({tensors[0], tensors[1]}),
                   SafetensorsMetadata{{"format", "pt"}});
  save_safetensors(folder / "model-00002-of-00002.safetensors", borrow({tensors[2], tensors[3]}),
                   SafetensorsMetadata{{"format", "pt"}});
  write_file(folder / "model.safetensors.index.json",
             index_text({{"a", "model-00001-of-00002.safetensors"},
                         {"b", "model-00001-of-00002.safetensors"},
                         {"d", "model-00002-of-00002.safetensors"},
                         {"c", "model-00002-of-00002.safetensors"}},
                        30));
}

std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : list_folder(folder)) files[name] = read_file(folder / name);
  return files;
}

formats::SinkInput input_of(const formats::OpenedFile& source) {
  formats::SinkInput input{.metadata = source.facts().metadata};
  for (const AnyTensor& tensor : source.facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  return input;
}

std::vector<std::string> copy_safetensors(const std::filesystem::path& from,
                                          const std::filesystem::path& to,
                                          formats::SinkOptions options) {
  const auto source = formats::open_safetensors_file(from, {});
  std::vector<std::string> losses;
  options.announce = [&](const std::vector<std::string>& all) { losses = all; };
  formats::write_safetensors_tensors(
      to, input_of(*source), options,
      [&](std::size_t i, const formats::PieceSink& sink) { source->visit(i, sink); });
  return losses;
}

}  // namespace thalia::test
