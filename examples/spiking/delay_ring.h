// Spikes on their way: input that arrives at a region's neurons in the steps to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spiking {

/// Longest delay of a synapse, in steps.
inline constexpr std::uint32_t kMaxDelay = 15;

/// One slot of sums for each step that a spike can still arrive in. The slot of a step follows from
/// its number, so the array is the whole state.
class DelayRing {
 public:
  static constexpr std::uint32_t kSlots = kMaxDelay + 1;

  explicit DelayRing(std::size_t neurons) : neurons_(neurons), sums_(kSlots * neurons) {}

  /// Input that arrives in `step`. Anybody who consumes it sets it to zero, for the step that comes
  /// here next.
  std::span<float> arriving(std::uint64_t step) noexcept {
    return {sums_.data() + step % kSlots * neurons_, neurons_};
  }

  std::size_t neurons() const noexcept { return neurons_; }
  /// [kSlots, neurons], for saving and loading.
  std::span<float> all() noexcept { return sums_; }

 private:
  std::size_t neurons_;
  std::vector<float> sums_;
};

}  // namespace spiking
