// The payload of a step_delta. docs/format/deltas.md, "step_delta".
#pragma once

#include <cstdint>

#include "codec/step/step_decoder.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::container {

/// Bytes of the front of a payload that read_step_delta() needs, at most.
std::uint64_t step_head_bytes(const format::TensorEntry& entry) noexcept;

/// Head, lengths and tables, checked. @param head the payload's first step_head_bytes().
/// @throws FormatError.
codec::StepDecoder read_step_delta(const format::TensorEntry& entry, ByteSpan head,
                                   io::MemoryBudget& budget);

/// Decodes a chunk. @param stored its bytes. @param out may be `base`. @throws FormatError.
void decode_steps(const codec::StepDecoder& decoder, ByteSpan stored, ByteSpan base,
                  MutableByteSpan out);

}  // namespace thalia::container
