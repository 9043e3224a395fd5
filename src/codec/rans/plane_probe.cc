// Estimates the entropy of each plane on a sample, before any memory is taken for the planes. A
// wrong guess costs space or time, never data.
#include "codec/rans/plane_probe.h"

#include <algorithm>

#include "codec/planes/byte_counts.h"

namespace thalia::codec {
namespace {

// Runs of 64 words, a 32nd of the chunk but at least 32 and at most 128 runs, from all over it: a
// chunk may span tensors.
constexpr std::size_t kRun = 64;
constexpr std::size_t kFewestRuns = 32, kMostRuns = 128;

}  // namespace

ElementKind element_kind(ElementLayout layout) noexcept {
  const std::size_t width = layout.element_bytes;
  // Rotation moves the sign below the mantissa, out of the byte that the exponent begins with. A
  // float of one byte has no planes that this could sort.
  return {width, layout.content == Content::floats && width > 1};
}

bool is_worth_coding(std::size_t count, double bits) {
  return bits < 0.99 * 8 * static_cast<double>(count);
}

std::array<bool, kMaxPlanes> promising_planes(const ElementKind& kind, ByteSpan raw,
                                              VectorSet set) {
  const std::size_t count = raw.size() / kind.width, runs = count / kRun;
  const std::size_t wanted = std::clamp(runs / 32, kFewestRuns, kMostRuns);
  const std::size_t step = std::max<std::size_t>(1, runs / wanted) * kRun;
  std::array<ByteCounts, kMaxPlanes> counts{};
  std::byte bytes[kMaxPlanes][kRun];
  std::byte* planes[kMaxPlanes];
  for (std::size_t k = 0; k < kMaxPlanes; ++k) planes[k] = bytes[k];
  std::size_t sampled = 0;
  for (std::size_t i = 0; i < count; i += step) {
    const std::size_t n = std::min(kRun, count - i);
    const std::byte* const from = raw.data() + i * kind.width;
    if (kind.width == 1) {
      std::copy(from, from + n, bytes[0]);
    } else {
      plane_kernels(set).of(kind.width, kind.is_rotated).split(from, n, planes);
    }
    for (std::size_t k = 0; k < kind.width; ++k)
      for (std::size_t j = 0; j < n; ++j) ++counts[k][std::to_integer<std::size_t>(bytes[k][j])];
    sampled += n;
  }
  std::array<bool, kMaxPlanes> out{};
  for (std::size_t k = 0; k < kind.width; ++k)
    out[k] = is_worth_coding(sampled, entropy_bits(counts[k]));
  return out;
}

}  // namespace thalia::codec
