// The kernels for any processor, as bits.h has them.
#include "codec/float/portable.h"

namespace thalia::codec {

const FloatKernels kPortableKernels = {
    .f32_to_f16 = kEachF32ToF16,
    .f32_to_bf16 = kEachF32ToBF16,
    .f32_to_f64 = kEachF32ToF64,
    .f64_to_f16 = kEachF64ToF16,
    .f64_to_bf16 = kEachF64ToBF16,
    .f64_to_f32 = kEachF64ToF32,
    .f16_to_f32 = kEachF16ToF32,
    .bf16_to_f32 = kEachBF16ToF32,
};

}  // namespace thalia::codec
