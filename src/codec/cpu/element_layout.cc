// Every dtype is named, with no default: a new one must be sorted in here, or the compiler warns.
#include "codec/cpu/element_layout.h"

namespace thalia::codec {

ElementLayout element_layout(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
      return {Content::floats, 2, 5};
    case DType::bf16:
      return {Content::floats, 2, 8};
    case DType::f32:
    case DType::c64:
      return {Content::floats, 4, 8};
    case DType::f64:
    case DType::c128:
      return {Content::floats, 8, 11};
    case DType::f8_e4m3:
    case DType::f8_e4m3fnuz:
      return {Content::floats, 1, 4};
    case DType::f8_e5m2:
    case DType::f8_e5m2fnuz:
      return {Content::floats, 1, 5};
    case DType::i8:
    case DType::u8:
      return {Content::integers, 1};
    case DType::i16:
    case DType::u16:
      return {Content::integers, 2};
    case DType::i32:
    case DType::u32:
      return {Content::integers, 4};
    case DType::i64:
    case DType::u64:
      return {Content::integers, 8};
    // Booleans and the scales of e8m0 are bytes that repeat, and gain from no filter. The others
    // are smaller than a byte or cross bytes, so their elements are not words that a filter could
    // cut.
    case DType::boolean:
    case DType::f8_e8m0:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::f4_e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2:
    case DType::ternary:
    case DType::binary:
      break;
  }
  return {};
}

}  // namespace thalia::codec
