#include "formats/onnx/models.h"
#include "formats/onnx/file.h"

#include <memory>

#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {

std::filesystem::path onnx_vector(std::string_view name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/onnx" / name;
}

formats::onnx::OnnxFile onnx_from(const std::string& bytes,
                                  const formats::onnx::OnnxReadOptions& options) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return formats::onnx::OnnxFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner},
                                             "test.onnx", options);
}

Proto onnx_tensor(std::string_view name, int data_type, const std::vector<std::int64_t>& dims) {
  Proto tensor;
  for (const std::int64_t extent : dims) tensor.varint(1, static_cast<std::uint64_t>(extent));
  return tensor.varint(2, static_cast<std::uint64_t>(data_type)).text(8, name);
}

std::string onnx_model(const Proto& graph) {
  return Proto()
      .varint(1, 8)
      .message(7, graph)
      .message(8, Proto().text(1, "").varint(2, 15))
      .bytes();
}

std::string onnx_model_of(const Proto& tensor) {
  return onnx_model(Proto().text(2, "g").message(5, tensor));
}

Tensor random_tensor(DType dtype, const Shape& shape) {
  const std::uint64_t bytes = *shape.byte_length(dtype);
  return Tensor::copy_of(dtype, shape, random_bytes(bytes, bytes + 1));
}

Tensor sparse_tensor(bool wide) {
  const std::vector<std::int16_t> values{7, -7, 9};
  if (wide) {
    const std::vector<std::uint64_t> indices{0, 0, 1, 0, 2, 2, 1, 0, 3};
    return Tensor::coo<std::uint64_t>(DType::i16, {2, 3, 4},
                                      {.indices = indices, .values = as_byte_span(values)});
  }
  const std::vector<std::uint32_t> indices{0, 0, 1, 0, 2, 2, 1, 0, 3};
  return Tensor::coo<std::uint32_t>(DType::i16, {2, 3, 4},
                                    {.indices = indices, .values = as_byte_span(values)});
}

}  // namespace thalia::test
