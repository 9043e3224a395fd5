#include "base/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace thalia {

void stream_copy(ByteSpan from, std::byte* to) noexcept {
#ifdef __SSE2__
  constexpr std::size_t kLine = 64;
  // Up to the target's next line, so that each line is stored whole.
  const std::size_t before = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  const std::size_t head = std::min(before, from.size());
  if (head != 0) std::memcpy(to, from.data(), head);
  const std::byte* source = from.data() + head;
  to += head;
  std::size_t left = from.size() - head;
  for (; left >= kLine; left -= kLine, source += kLine, to += kLine) {
    const auto* const in = reinterpret_cast<const __m128i*>(source);
    auto* const out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  if (left != 0) std::memcpy(to, source, left);
#else
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
#endif
}

void settle_stream_copies() noexcept {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace thalia
