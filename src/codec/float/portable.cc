// The kernels for any processor, as bits.h has them.
#include "codec/float/portable.h"

#include "codec/float/sums.h"

namespace thalia::codec {

namespace {

void range_of(const double* numbers, std::size_t count, double limit, NumberRange& out) noexcept {
  range_in_lanes(numbers, count, limit, out);
}

double squares_of(const double* numbers, std::size_t count, double mean) noexcept {
  return squares_in_lanes(numbers, count, mean);
}

}  // namespace

const FloatKernels kPortableKernels = {
    .f32_to_f16 = kEachF32ToF16,
    .f32_to_bf16 = kEachF32ToBF16,
    .f32_to_f64 = kEachF32ToF64,
    .f64_to_f16 = kEachF64ToF16,
    .f64_to_bf16 = kEachF64ToBF16,
    .f64_to_f32 = kEachF64ToF32,
    .f16_to_f32 = kEachF16ToF32,
    .bf16_to_f32 = kEachBF16ToF32,
    .range = range_of,
    .squares = squares_of,
};

}  // namespace thalia::codec
