// The kernels that restore blocks, by the set of instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/cpu/processor.h"
#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

/// Writes the elements of as many blocks, in the floating point environment of the thread.
using Expand = void (*)(const std::uint8_t* in, std::size_t blocks, float* out);

/// For a set that this processor supports; nullptr for a type that it cannot restore. All sets
/// give the same bits.
Expand expand_of(GgmlType type, codec::VectorSet set) noexcept;

}  // namespace thalia::formats::gguf
