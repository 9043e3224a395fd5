// A tensor as a .npy file that NumPy reads with no package beside it.
#pragma once

#include <string>

#include "thalia/types.h"

namespace thalia::cli {

/// The dtype that a .npy file holds for one of ours, so that numpy.load gives numbers with no
/// package beside it: the same where NumPy has it; bf16 and all floating-point types of 8 bits and
/// less become float32, which holds each of their values; i4, i2, ternary and binary (-1, 1) int8;
/// u4 and u2 uint8. "<f4".
std::string npy_dtype(DType dtype);

/// As numpy.save writes it.
std::string npy_header(DType dtype, const Shape& shape);

/// Elements [0, count) of row-major logical bytes as they are in the .npy file. Appends.
void append_npy(std::string& out, DType dtype, ByteSpan bytes, std::uint64_t count);

}  // namespace thalia::cli
