// One element as the C++ type that a caller expects of its dtype. Floats of 32 bits and less give
// float, integers the widest of their sign. For many elements model::decode_elements is faster.

#include "thalia/element.h"

#include <bit>
#include <cstring>
#include <span>

#include "model/tensor/element_decoder.h"
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
  model::decode_elements(dtype, bytes, index, std::span(&value, 1));
  return value;
}

}  // namespace

Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index) {
  switch (dtype) {
    // Copied, not converted: a NaN keeps its bits.
    case DType::f32:
      return load<float>(bytes, index);
    case DType::f64:
      return load<double>(bytes, index);
    case DType::bf16:
      return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(bytes, index)} << 16);
    case DType::c64:
      return load<std::complex<float>>(bytes, index);
    case DType::c128:
      return load<std::complex<double>>(bytes, index);
    case DType::i64:
      return load<std::int64_t>(bytes, index);
    case DType::u64:
      return load<std::uint64_t>(bytes, index);
    case DType::f16:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e8m0:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::f4_e2m1:
      return static_cast<float>(number(dtype, bytes, index));
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i4:
    case DType::i2:
    case DType::ternary:
    case DType::binary:
      return static_cast<std::int64_t>(number(dtype, bytes, index));
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u4:
    case DType::u2:
      return static_cast<std::uint64_t>(number(dtype, bytes, index));
    case DType::boolean:
      return number(dtype, bytes, index) != 0;
  }
  throw UnsupportedError(ErrorCode::unsupported_feature, "unknown dtype");
}

}  // namespace thalia
