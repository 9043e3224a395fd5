// Philox 4x32-10: random numbers as a function of a counter and a key, without a state, so that any
// of them can be computed in any order, on any machine. J. K. Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace thalia {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) noexcept {
  constexpr std::uint64_t kFirstFactor = 0xD2511F53;
  constexpr std::uint64_t kSecondFactor = 0xCD9E8D57;
  constexpr std::uint32_t kFirstStep = 0x9E3779B9;
  constexpr std::uint32_t kSecondStep = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = kFirstFactor * counter[0];
    const std::uint64_t second = kSecondFactor * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + kFirstStep, key[1] + kSecondStep};
  }
  return counter;
}

/// 53 of 64 random bits as a number in [0, 1), exactly.
constexpr double unit_interval(std::uint32_t high, std::uint32_t low) noexcept {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace thalia
