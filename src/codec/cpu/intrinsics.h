// The processor's vector instructions for the versions of integer codecs, and the attributes of
// functions that use them. Functions and not whole files, as inline functions of headers, compiled
// for a processor that has more, could otherwise be the ones that the linker keeps.
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

/// Of VectorSet::avx2 and VectorSet::avx512.
#define THALIA_AVX2 __attribute__((target("avx2")))
#define THALIA_AVX512 \
  __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")))

#endif
