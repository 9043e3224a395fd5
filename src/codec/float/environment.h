// The state of the floating point unit that the kernels expect.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace thalia::codec {

/// Rounding to nearest, subnormals kept, no traps, until its end. A program that was linked with
/// -ffast-math, or set its own mode, would else get other bytes. The integer arithmetic of other
/// processors needs none of it.
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
