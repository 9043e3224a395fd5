// The upper halves of the vector registers, which code for AVX is to clear when it ends. If they
// are not clear, each instruction of the older kind has to wait for them: on processors of AMD's
// Zen line SHA-256 takes a third longer then. A thread is born with the registers of its parent.
#pragma once

namespace thalia::integrity {

#if defined(__x86_64__)
[[gnu::target("avx")]] inline void clear_with_avx() noexcept {
  __builtin_ia32_vzeroupper();
}
#endif

/// Before code that another library compiled for older processors, and after code that does not
/// clear them by itself.
inline void clear_upper_vectors() noexcept {
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) clear_with_avx();
#endif
}

}  // namespace thalia::integrity
