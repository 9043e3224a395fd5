// Whether this program was built with a sanitizer that takes memory of its own: bounds on memory,
// and tests that deny a process some, mean nothing then.
#pragma once

namespace thalia::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace thalia::test
