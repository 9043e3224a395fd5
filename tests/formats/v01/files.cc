#include "formats/v01/files.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "format/v01.h"
#include "formats/v01/header.h"
#include "integrity/sha256.h"

namespace thalia::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTrailer = 32;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".thalia" || extension == ".zst" || extension == ".lz4")
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> all_files() {
  std::vector<fs::path> files = files_in(v01_data(""));
  const char* vectors = std::getenv("THALIA_VECTORS");
  const fs::path folder =
      vectors ? fs::path(vectors) : fs::path(THALIA_SOURCE_ROOT) / "../shared/vectors";
  for (const fs::path& path : files_in(folder / "thalia")) files.push_back(path);
  return files;
}

enum class Sort { positive, negative, delta };

Sort sort_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with("neg_")) return Sort::negative;
  return name.find(".delta.") == std::string::npos ? Sort::positive : Sort::delta;
}

std::vector<fs::path> files_of(Sort sort) {
  std::vector<fs::path> files = all_files();
  std::erase_if(files, [&](const fs::path& path) { return sort_of(path) != sort; });
  return files;
}

template <typename T>
Tensor tensor_of(const Shape& shape, std::initializer_list<T> elements) {
  return Tensor::copy_of<T>(shape, std::span<const T>(elements.begin(), elements.size()));
}

Tensor boolean_tensor() {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{0}, std::byte{1}};
  return Tensor::copy_of(DType::boolean, {3}, bytes);
}

Tensor half_tensor() {
  const std::array<std::uint16_t, 2> bits{0x3C00, 0x7BFF};
  return Tensor::copy_of(DType::f16, {2, 1}, std::as_bytes(std::span(bits)));
}

Tensor coordinates() {
  const std::array<std::uint32_t, 6> indices{0, 1, 4, 2, 0, 3};
  const std::array<double, 3> values{1.5, -0.0, 1e300};
  return Tensor::coo<std::uint32_t>(DType::f64, {5, 4},
                                    {indices, std::as_bytes(std::span(values))});
}

Tensor rows() {
  const std::array<std::uint64_t, 4> row_pointers{0, 2, 2, 3};
  const std::array<std::uint64_t, 3> columns{0, 3, 1};
  const std::array<float, 3> values{1, 2, 3};
  return Tensor::csr<std::uint64_t>(DType::f32, {3, 4},
                                    {row_pointers, columns, std::as_bytes(std::span(values))});
}

}  // namespace

fs::path v01_data(std::string_view name) {
  return fs::path(THALIA_SOURCE_ROOT) / "tests/data/v01" / name;
}

std::vector<fs::path> v01_positives() {
  return files_of(Sort::positive);
}
std::vector<fs::path> v01_negatives() {
  return files_of(Sort::negative);
}
std::vector<fs::path> v01_deltas() {
  return files_of(Sort::delta);
}

std::string v01_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void finalize_v01(std::string& file) {
  const std::size_t length = file.size() - kTrailer;
  const Digest256 digest = integrity::sha256(as_byte_span(file).first(length));
  std::memcpy(file.data() + length, digest.bytes, kTrailer);
}

std::string v01_file_of(std::string_view metadata, std::string_view region_json,
                        std::string_view tensors) {
  format::V01FileHeader header = formats::to_disk({});
  format::V01RegionEntry entry{};
  entry.name[0] = 'r';
  header.metadata_length = metadata.size();
  entry.data_offset = sizeof header + metadata.size() + tensors.size();
  entry.data_length = region_json.size();
  header.region_index_offset = entry.data_offset + region_json.size();
  header.region_index_length = sizeof entry;
  header.num_regions = 1;
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(metadata).append(tensors).append(region_json);
  file.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  file.append(kTrailer, '\0');
  finalize_v01(file);
  return file;
}

V01Document v01_sample() {
  V01Document document;
  document.header.timestamp = 1765000000;
  document.header.training_steps = 77;
  Value& metadata = document.metadata;
  metadata["experiment"] = "two lines\nand \"quotes\", é 😀 \x7f";
  metadata["thalia_version"] = "0.2.0";
  metadata["numbers"] = Value::array();
  for (const char* text : {"0", "-1", "123456789012345678901234567890", "0.1", "1e-07", "-0.0",
                           "NaN", "Infinity", "-Infinity"})
    metadata["numbers"].push_back(Value::number(text));
  metadata["empty"]["list"] = Value::array();
  metadata["empty"]["object"] = Value::object();

  V01Entry cortex{.name = "cortex"};
  cortex.state["weights"]["w_ff"] = tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  cortex.state["weights"]["w_rec"] = rows();
  cortex.state["neuron_state"]["membrane"] = tensor_of<double>({2}, {-65, -70.5});
  cortex.state["neuron_state"]["spikes"] = boolean_tensor();
  cortex.state["learning_state"]["trace"] = half_tensor();
  cortex.state["learning_state"]["sparse"] = coordinates();
  cortex.state["config"]["lr"] = 0.001;
  document.entries.push_back(std::move(cortex));

  V01Entry striatum{.name = "striatum"};
  striatum.state["history"] = Value::array();
  striatum.state["history"].push_back(tensor_of<std::int32_t>({2, 2}, {1, -2, 3, -4}));
  striatum.state["history"].push_back(Value("text"));
  Value step = Value::object();
  step["scalar"] = tensor_of<std::int64_t>({}, {-5});
  step["empty"] = Tensor::zeros(DType::f32, {0, 3});
  striatum.state["history"].push_back(std::move(step));
  document.entries.push_back(std::move(striatum));

  V01Entry pathway{.name = "pathway:cortex_to_striatum"};
  pathway.state["weights"]["w"] = tensor_of<float>({1}, {0.5});
  document.entries.push_back(std::move(pathway));
  count_v01_totals(document);
  return document;
}

}  // namespace thalia::test
