// Numbers like the weights of a network, the same in every run and for any number of threads, so
// that measurements compress the same bytes. Each stretch of elements has a seed of its own, which
// follows from its place; any thread can make it.
#include "measure/samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <span>

#include "base/parallel.h"

namespace thalia::measure {
namespace {

// Elements with one seed, and the standard deviation, as small as that of a trained layer's
// weights.
constexpr std::size_t kSeededElements = 1 << 18;
constexpr float kSigma = 0.02f;

// SplitMix64 (Steele, Lea, Flood), as std::normal_distribution differs between standard libraries.
struct SplitMix {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In (0, 1].
  float uniform() { return static_cast<float>((next() >> 40) + 1) * 0x1p-24f; }
};

// Box and Muller: two uniform numbers make two normal ones. The logarithm needs uniform() above 0.
void fill(std::span<float> out, std::uint64_t seed) {
  SplitMix random{seed};
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const float radius = kSigma * std::sqrt(-2 * std::log(random.uniform()));
    const float angle = 2 * std::numbers::pi_v<float> * random.uniform();
    out[i] = radius * std::cos(angle);
    if (i + 1 < out.size()) out[i + 1] = radius * std::sin(angle);
  }
}

std::size_t runs_of(std::size_t elements) {
  return (elements + kSeededElements - 1) / kSeededElements;
}

template <typename Element>
std::span<Element> run_of(std::span<Element> all, std::size_t run) {
  const std::size_t begin = run * kSeededElements;
  return all.subspan(begin, std::min(kSeededElements, all.size() - begin));
}

}  // namespace

void fill_normal(std::span<float> out, unsigned threads) {
  parallel_for(runs_of(out.size()), threads,
               [&](std::size_t run) { fill(run_of(out, run), 20 + run); });
}

std::vector<float> normal_f32(std::uint64_t bytes) {
  std::vector<float> out(bytes / sizeof(float));
  fill_normal(out, 0);
  return out;
}

std::vector<BFloat16> normal_bf16(std::uint64_t bytes) {
  std::vector<BFloat16> out(bytes / sizeof(BFloat16));
  parallel_for(runs_of(out.size()), 0, [&](std::size_t run) {
    const std::span<BFloat16> part = run_of(std::span(out), run);
    std::vector<float> values(part.size());
    fill(values, 20 + run);
    std::transform(values.begin(), values.end(), part.begin(), [](float value) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      // Rounds to nearest, ties to even; the numbers are finite and small.
      return BFloat16{static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
    });
  });
  return out;
}

}  // namespace thalia::measure
