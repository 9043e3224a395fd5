// Whether this program was built with a sanitizer that takes memory of its own: bounds on memory,
// and tests that deny a process some, mean nothing then, and everything takes long.
#pragma once

// Those of LeakSanitizer, which only a program built with it has.
extern "C" {
[[gnu::weak]] void __lsan_disable();
[[gnu::weak]] void __lsan_enable();
}

namespace thalia::test {

/// What is allocated while one exists, on its thread, may leak.
class LeaksAllowed {
 public:
  LeaksAllowed() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksAllowed() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  LeaksAllowed(const LeaksAllowed&) = delete;
  LeaksAllowed& operator=(const LeaksAllowed&) = delete;
};

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitized = true;
inline constexpr bool kThreadSanitized = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kAddressSanitized = false;
inline constexpr bool kThreadSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitized = __has_feature(address_sanitizer);
inline constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
#else
inline constexpr bool kAddressSanitized = false;
inline constexpr bool kThreadSanitized = false;
#endif
inline constexpr bool kSanitized = kAddressSanitized || kThreadSanitized;

/// How many of `all` random cases are tried: one in ten where each takes ten times as long. The
/// round without sanitizers tries all.
constexpr int random_cases(int all) {
  return kSanitized ? all / 10 : all;
}

/// From a system call at which a process is killed to the next one. What is left then is the same
/// with sanitizers, under which a process takes ten times as long to begin.
inline constexpr unsigned kCallStep = kSanitized ? 4 : 1;

}  // namespace thalia::test
