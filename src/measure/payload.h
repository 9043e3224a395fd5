// A payload as the tensors of a file.
#pragma once

#include <cstdint>
#include <string>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/writer.h"

namespace thalia::measure {

/// What a large payload is cut into where the number of tensors does not matter.
inline constexpr std::uint64_t kTensorBytes = 16 << 20;

/// The name of tensor `i`.
std::string tensor_name(std::uint64_t i);

/// Declares `payload` as tensors of `tensor_bytes` (the last one shorter), in one region "model".
/// A payload's bytes stay borrowed.
void add_tensors(Writer& writer, ByteSpan payload, DType dtype,
                 std::uint64_t tensor_bytes = kTensorBytes);

}  // namespace thalia::measure
