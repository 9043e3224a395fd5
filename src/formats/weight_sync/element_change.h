// How TRL writes what changed of one tensor: positions of elements and their new values.
// docs/format/trl.md, "The files".
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::formats::weight_sync {

enum class PositionEncoding { gap_delta, raw };

struct ElementList {
  DType position_type = DType::i32;
  std::vector<std::byte> positions{};
  std::vector<std::byte> values{};
  std::uint64_t count = 0;
};

/// Elements that differ in a bit. Both states are dense, of this type. @throws UnsupportedError
/// for elements that are no whole bytes, and where positions do not suffice.
ElementList list_elements(PositionEncoding encoding, DType dtype, ByteSpan before, ByteSpan after);

/// Puts the values in their places. @param positions of `raw`, i32, of `gap_delta`, u16 or u32.
/// @throws FormatError; UnsupportedError as above.
void apply_elements(PositionEncoding encoding, const Tensor& positions, const Tensor& values,
                    DType dtype, MutableByteSpan state);

}  // namespace thalia::formats::weight_sync
