#include "formats/samples.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "formats/source/dtype_names.h"

namespace thalia::test {

std::string safetensors_bytes(std::string_view header, std::size_t data_bytes) {
  std::string file;
  for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string one_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"t\":{\"dtype\":" + std::string(dtype) + ",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}}";
}

std::filesystem::path golden(std::string_view name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats" / name;
}

std::optional<std::filesystem::path> real_model() {
  const char* vectors = std::getenv("THALIA_VECTORS");
  const std::filesystem::path folder =
      vectors ? std::filesystem::path(vectors)
              : std::filesystem::path(THALIA_SOURCE_ROOT) / "../shared/vectors";
  const std::filesystem::path model = folder / "real/silero_vad_16k.safetensors";
  return std::filesystem::exists(model) ? std::optional(model) : std::nullopt;
}

OwnedTensor make_tensor(std::string name, DType dtype, Shape shape) {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  OwnedTensor tensor{.name = std::move(name), .dtype = dtype, .shape = shape, .bytes = {}};
  tensor.bytes.resize(shape.byte_length(dtype).value());
  for (std::byte& byte : tensor.bytes) {
    byte = static_cast<std::byte>(dtype == DType::boolean ? random() & 1 : random());
  }
  return tensor;
}

std::vector<NamedArray> borrow(const std::vector<OwnedTensor>& tensors) {
  std::vector<NamedArray> out;
  for (const OwnedTensor& tensor : tensors) {
    out.push_back(
        {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .bytes = tensor.bytes});
  }
  return out;
}

std::vector<DType> safetensors_dtypes() {
  std::vector<DType> dtypes;
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    if (formats::safetensors_rank(DType{code})) dtypes.push_back(DType{code});
  }
  return dtypes;
}

bool same_content(const SafetensorsFile& a, const SafetensorsFile& b) {
  const auto by_name = [](const SafetensorsFile& file) {
    std::vector<const NamedArray*> tensors;
    for (const NamedArray& tensor : file.tensors()) tensors.push_back(&tensor);
    std::ranges::sort(tensors, {}, [](const auto* tensor) { return tensor->name; });
    return tensors;
  };
  const auto same = [](const NamedArray* x, const NamedArray* y) {
    return x->name == y->name && x->dtype == y->dtype && x->shape == y->shape &&
           std::ranges::equal(x->bytes, y->bytes);
  };
  return a.has_metadata() == b.has_metadata() && a.metadata() == b.metadata() &&
         std::ranges::equal(by_name(a), by_name(b), same);
}

}  // namespace thalia::test
