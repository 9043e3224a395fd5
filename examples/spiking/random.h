// Random numbers as a pure function of a key and a counter. Nothing is stored between draws, so a
// network is the same however many threads build it, and a run is resumed from its step number.
#pragma once

#include <array>
#include <cstdint>

namespace spiking {

using Random4 = std::array<std::uint32_t, 4>;

/// Philox4x32 with ten rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
/// 1, 2, 3", SC 2011). Integer arithmetic only: the same bits on every machine.
constexpr Random4 philox(Random4 counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// What a draw is for. Each use has numbers of its own, so adding one changes no other.
enum class Stream : std::uint32_t {
  membrane,
  degree,
  synapse,
  dense_weight,
  noise,
  damage,
};

/// The draws of one stream of one object (a region, a matrix) of a seeded network.
class Random {
 public:
  constexpr Random(std::uint64_t seed, Stream stream, std::uint32_t object)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        object_(object),
        stream_(static_cast<std::uint32_t>(stream)) {}

  /// Four draws, addressed by two numbers: a row and a place in it, or a step and a neuron.
  constexpr Random4 at(std::uint32_t major, std::uint32_t minor) const {
    return philox({minor, major, object_, stream_}, key_);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t object_;
  std::uint32_t stream_;
};

/// [0, 1) in steps of 2^-24, exact in a float.
constexpr float unit_float(std::uint32_t draw) {
  return static_cast<float>(draw >> 8) * 0x1p-24f;
}

/// [0, bound).
constexpr std::uint32_t below(std::uint32_t draw, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{draw} * bound) >> 32);
}

}  // namespace spiking
