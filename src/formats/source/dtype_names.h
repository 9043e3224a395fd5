// The element types of safetensors files and ours: names, and the order in which the reference
// (safetensors 0.8, `enum Dtype`) sorts them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats {

struct SafetensorsDType {
  std::string_view name;
  DType dtype;
};

/// In the reference's ascending order: a file has its tensors in descending order of dtype.
/// nullopt for a dtype that the format lacks.
std::optional<unsigned> safetensors_rank(DType dtype) noexcept;
/// "F32", …. Empty for a dtype that the format lacks.
std::string_view safetensors_dtype_name(DType dtype) noexcept;
std::optional<DType> safetensors_dtype_from_name(std::string_view name) noexcept;

enum class SizeFault { none, overflow, no_whole_bytes };

/// Bytes of a tensor by the reference's arithmetic, which is stricter than ours: no product on the
/// way may pass 64 bits, not even before an extent of 0 or for the count of bits; packed types must
/// come out as whole bytes.
struct SafetensorsSize {
  std::uint64_t bytes = 0;
  SizeFault fault = SizeFault::none;
};
SafetensorsSize safetensors_size(DType dtype, const Shape& shape) noexcept;

}  // namespace thalia::formats
