// Asked once per process and never changed afterwards: every thread picks the same kernels. On
// other processors than x86-64 all answers are no, and the portable kernels run.
#include "codec/cpu/processor.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace thalia::codec {
namespace {

Processor ask_processor() noexcept {
  Processor found;
#ifdef __x86_64__
  // clang 14 cannot ask for F16C by name; that the system keeps its registers is part of AVX2.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_bit = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  found.avx2 = __builtin_cpu_supports("avx2") != 0;
  found.f16c = found.avx2 && has_bit;
  found.avx512f = __builtin_cpu_supports("avx512f") != 0;
  found.avx512_bytes =
      found.avx512f && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512vbmi2") != 0 &&
      __builtin_cpu_supports("avx512bitalg") != 0;
#endif
  return found;
}

}  // namespace

const Processor& processor() noexcept {
  static const Processor here = ask_processor();
  return here;
}

// The AVX-512 kernels may use AVX2 as well, so neither counts without it.
bool has_vector_set(VectorSet set) noexcept {
  if (set == VectorSet::portable) return true;
  const Processor& here = processor();
  return here.avx2 && (set == VectorSet::avx2 || here.avx512_bytes);
}

VectorSet fastest_vector_set() noexcept {
  return has_vector_set(VectorSet::avx512) ? VectorSet::avx512
         : has_vector_set(VectorSet::avx2) ? VectorSet::avx2
                                           : VectorSet::portable;
}

}  // namespace thalia::codec
