// The vector instructions that the kernels of the codecs use, and the attributes of functions that
// use them. The attributes are on functions, not on whole files: inline functions of headers would
// else be compiled for the newer processor too, and the linker might keep those for all processors.
#pragma once

#ifdef __x86_64__

#if defined(__GNUC__) && !defined(__clang__)
// gcc bug 105593: its own headers make undefined vectors from themselves, and it warns of that.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

/// For functions of VectorSet::avx2 and VectorSet::avx512.
#define THALIA_AVX2 __attribute__((target("avx2")))
#define THALIA_AVX512 \
  __attribute__((     \
      target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg")))

#endif
