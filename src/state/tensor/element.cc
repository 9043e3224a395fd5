// One element as the C++ type that a caller expects of its dtype. Floats of 32 bits and less give
// float, integers the widest of their sign. For many elements state::decode_elements is faster.

#include "thalia/types.h"

#include <bit>
#include <cstring>
#include <span>

#include "base/dtype_facts.h"
#include "state/tensor/element_decoder.h"
#include "thalia/error.h"

namespace thalia {
namespace {

template <typename T>
T load(ByteSpan bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Exact for all that double holds.
double number(DType dtype, ByteSpan bytes, std::uint64_t index) {
  double value = 0;
  state::decode_elements(dtype, bytes, index, std::span(&value, 1));
  return value;
}

}  // namespace

Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index) {
  if (static_cast<std::uint8_t>(dtype) >= kDTypeCount)
    throw UnsupportedError(ErrorCode::unsupported_feature, "unknown dtype");
  switch (dtype_facts(dtype).kind) {
    case DTypeKind::floating:
      // Copied, not converted: a NaN keeps its bits.
      if (dtype == DType::f32) return load<float>(bytes, index);
      if (dtype == DType::f64) return load<double>(bytes, index);
      if (dtype == DType::bf16)
        return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(bytes, index)} << 16);
      return static_cast<float>(number(dtype, bytes, index));
    case DTypeKind::signed_integer:
      if (dtype == DType::i64) return load<std::int64_t>(bytes, index);
      return static_cast<std::int64_t>(number(dtype, bytes, index));
    case DTypeKind::unsigned_integer:
      if (dtype == DType::u64) return load<std::uint64_t>(bytes, index);
      return static_cast<std::uint64_t>(number(dtype, bytes, index));
    case DTypeKind::boolean:
      return number(dtype, bytes, index) != 0;
    case DTypeKind::complex:
      break;
  }
  if (dtype == DType::c64) return load<std::complex<float>>(bytes, index);
  return load<std::complex<double>>(bytes, index);
}

}  // namespace thalia
