// Models of the tests, made a field at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/onnx/encode.h"
#include "formats/onnx/file.h"
#include "thalia/formats/onnx.h"

namespace thalia::test {

/// A file of tests/data/formats/onnx.
std::filesystem::path onnx_vector(std::string_view name);
formats::onnx::OnnxFile onnx_from(const std::string& bytes,
                                  const formats::onnx::OnnxReadOptions& options = {});

/// A message, field by field: proto().varint(1, 8).text(7, "…").
class Proto {
 public:
  Proto& varint(unsigned field, std::uint64_t value) {
    formats::onnx::Encoder(bytes_).varint(field, value);
    return *this;
  }
  Proto& text(unsigned field, std::string_view value) {
    formats::onnx::Encoder(bytes_).text(field, value);
    return *this;
  }
  Proto& message(unsigned field, const Proto& value) { return text(field, value.bytes_); }
  Proto& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// A TensorProto without elements.
Proto onnx_tensor(std::string_view name, int data_type, const std::vector<std::int64_t>& dims);
/// ModelProto of IR version 8 around a graph of these fields.
std::string onnx_model(const Proto& graph);
/// The same of one initialiser.
std::string onnx_model_of(const Proto& tensor);

/// Bytes from a fixed sequence, another for each size.
Tensor random_tensor(DType dtype, const Shape& shape);
/// Three elements of i16, of shape [2, 3, 4]; `wide`: with indices of 8 bytes.
Tensor sparse_tensor(bool wide = false);

}  // namespace thalia::test
