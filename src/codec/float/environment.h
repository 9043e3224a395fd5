// The state of the floating point unit that the kernels expect.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace thalia::codec {

/// Sets rounding to nearest, subnormals kept and no traps until it is destroyed. A program that was
/// linked with -ffast-math, or set a mode of its own, would else get other bytes. Other processors
/// convert with integer arithmetic, which has no modes.
class StandardEnvironment {
 public:
#ifdef __x86_64__
  StandardEnvironment() noexcept : saved_(_mm_getcsr()) {
    _mm_setcsr(kStandard);
  }
  ~StandardEnvironment() {
    _mm_setcsr(saved_);
  }
#else
  StandardEnvironment() noexcept {}
  ~StandardEnvironment() {}
#endif
  StandardEnvironment(const StandardEnvironment&) = delete;
  StandardEnvironment& operator=(const StandardEnvironment&) = delete;

#ifdef __x86_64__

 private:
  static constexpr unsigned kStandard = 0x1F80;
  unsigned saved_;
#endif
};

}  // namespace thalia::codec
