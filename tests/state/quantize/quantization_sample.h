// Weights of tests of quantization, and what a file says of them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/float/conversion.h"
#include "support/numbers.h"
#include "thalia/reader.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"
#include "thalia/writer.h"

namespace thalia::test {

inline SaveOptions quiet_save() {
  return {
      .timestamp = 1767225600, .output = {.durability = Durability::none}, .work = {.threads = 2}};
}

inline Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& numbers) {
  return Tensor::filled({.dtype = dtype, .shape = shape}, [&](MutableByteSpan out) {
    codec::convert_elements(DType::f64, dtype, as_byte_span(numbers), out);
  });
}

inline std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> out(tensor.element_count());
  codec::convert_elements(tensor.dtype(), DType::f64, tensor.bytes(),
                          std::as_writable_bytes(std::span(out)));
  return out;
}

struct NamedTensor {
  std::string name;
  Tensor tensor;
  Role role = Role::weights;
};

/// One region, "layer", of these tensors.
inline void write_layer(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                        SaveOptions options = quiet_save()) {
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "layer"});
  for (const NamedTensor& one : tensors) {
    writer.add_tensor(region,
                      {.name = one.name,
                       .dtype = one.tensor.dtype(),
                       .shape = one.tensor.shape(),
                       .role = one.role},
                      one.tensor.bytes());
  }
  writer.commit();
}

inline TensorView layer_tensor(const std::filesystem::path& path, std::string_view name) {
  return Reader::open(path).region("layer").at(name);
}

}  // namespace thalia::test
