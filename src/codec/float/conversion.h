// Elements of one floating point type to another. bits.h states how they are rounded.
#pragma once

#include <cstddef>

#include "codec/float/kernels.h"
#include "thalia/types.h"

namespace thalia::codec {

/// The fastest set that this processor and this build support; determined once.
InstructionSet fastest_instruction_set() noexcept;

/// f32, f64, f16 and bf16.
bool is_convertible(DType dtype) noexcept;

/// The number of elements in `in_bytes`. @throws UsageError (dtype_mismatch) if a type is not one
/// of the four, (size_mismatch) unless both sizes are whole elements, and the same number of them.
std::size_t checked_count(DType from, DType to, std::size_t in_bytes, std::size_t out_bytes);

/// Converts as many elements as `in` has, which is what `out` has room for; the two need no
/// alignment and must not overlap. Each is rounded once, to nearest, ties to even, whatever the
/// thread's rounding mode; every instruction set gives the same bytes. Between equal types a copy.
/// Any thread may call it. @throws as checked_count().
void convert_elements(DType from, DType to, ByteSpan in, MutableByteSpan out,
                      InstructionSet set = fastest_instruction_set());

}  // namespace thalia::codec
