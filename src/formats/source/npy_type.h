// Element types of .npy arrays and ours. docs/format/npz.md, "Element types".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats {

/// What "descr" says of an element. Types that NumPy lacks are those of the package ml_dtypes.
struct NpyType {
  DType dtype = DType::f32;  ///< u8 for bytes without a meaning
  bool swapped = false;      ///< most significant byte first
  std::uint32_t opaque = 0;  ///< of bytes without a meaning ("|V8"): how many an element has
};

/// What "descr" means; nullopt for a type that is not read.
std::optional<NpyType> npy_type(std::string_view descr) noexcept;
/// What numpy.save writes for a dtype, with ml_dtypes for those that NumPy lacks: "<V2" for bf16,
/// "<V1" for all of 8 bits. Empty for packed types.
std::string npy_descr(DType dtype);

/// Why a type is not read: "the array holds texts". Static storage.
std::string_view why_no_npy_type(std::string_view descr) noexcept;

}  // namespace thalia::formats
