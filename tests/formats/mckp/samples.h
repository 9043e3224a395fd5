// Tensors and MCKP files of tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thalia/formats/mckp.h"

namespace thalia::test {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Numbers of a normal distribution by a sum of uniform ones, the same everywhere.
std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed, float sigma = 0.02f);
Tensor normal_f32(const Shape& shape, std::uint64_t seed);
/// Truncated from f32.
Tensor normal_bf16(const Shape& shape, std::uint64_t seed);
/// Any bytes; of bool 0 and 1 alone.
Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed);

/// A 3 x 4 matrix of 3 elements, with padding before them.
Tensor sparse_f64(Encoding encoding);
/// A tensor all of whose bytes are zero, indices too.
Tensor zero_bytes(const TensorLayout& layout);

/// The file's bytes. `bases` as add() takes them: by name.
std::string mckp_bytes(const NamedTensors& tensors, const MckpWriteOptions& options = {},
                       const NamedTensors& bases = {}, MckpWriteResult* result = nullptr);
MckpFile open_bytes(const std::string& bytes, const MckpReadOptions& options = {});

}  // namespace thalia::test
