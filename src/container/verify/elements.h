// Elements that their type does not allow.
#pragma once

#include <cstdint>
#include <optional>

#include "format/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// True of types that do not take every code: bool and ternary.
bool has_illegal_codes(DType dtype) noexcept;

/// Checks every element of `elements`, whole bytes of the type. @param offset in the file, for the
/// message; nullopt if they lie in none. @throws FormatError (bad_value).
void check_elements(DType dtype, std::optional<std::uint64_t> offset, ByteSpan elements);
/// The same of a tensor of a file.
inline void check_elements(const format::TensorEntry& entry, ByteSpan elements) {
  check_elements(entry.dtype, entry.stored_offset, elements);
}

/// Checks the bits after the last element of a dense tensor of a packed type. @param tail the
/// tensor's last bytes, one or more. @throws FormatError.
void check_unused_bits(const format::TensorEntry& entry, ByteSpan tail);

}  // namespace thalia::container
