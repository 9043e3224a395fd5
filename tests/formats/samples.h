// Files of the tests of formats: safetensors bytes from a header, the golden files, the real model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/safetensors.h"

namespace thalia::test {

/// Length, header, and `data_bytes` bytes that count up.
std::string safetensors_bytes(std::string_view header, std::size_t data_bytes = 0);
/// {"t":{"dtype":…,"shape":…,"data_offsets":…}}, the values verbatim.
std::string one_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets);

/// A file of tests/data/formats.
std::filesystem::path golden(std::string_view name);
/// The trained model; nullopt where the vectors are not there.
std::optional<std::filesystem::path> real_model();

/// A tensor that owns its bytes.
struct OwnedTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};
/// Bytes from a fixed sequence, a different one for each name.
OwnedTensor make_tensor(std::string name, DType dtype, Shape shape);
std::vector<NamedArray> borrow(const std::vector<OwnedTensor>& tensors);

/// The dtypes that safetensors has.
std::vector<DType> safetensors_dtypes();

/// Whether both hold the same tensors with equal bytes, in any order, and equal metadata.
bool same_content(const SafetensorsFile& a, const SafetensorsFile& b);

}  // namespace thalia::test
