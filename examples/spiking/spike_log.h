// What a run did, small enough to keep and exact enough to compare: per step, how many neurons
// spiked and a hash of which.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "spiking/short_term.h"

namespace spiking {

struct StepRecord {
  std::uint32_t step = 0;
  std::uint64_t spikes = 0;
  std::uint64_t hash = 0;

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

/// FNV-1a, a 32-bit word at a time, over every spike of a step: its region, its neuron and the bits
/// of its efficacy.
class SpikeHash {
 public:
  void add_region(std::uint32_t region, std::span<const Spike> spikes) noexcept;
  std::uint64_t value() const noexcept { return value_; }
  std::uint64_t count() const noexcept { return count_; }

 private:
  void add(std::uint32_t word) noexcept { value_ = (value_ ^ word) * 0x100000001b3; }

  std::uint64_t value_ = 0xcbf29ce484222325;
  std::uint64_t count_ = 0;
};

using SpikeLog = std::vector<StepRecord>;

std::uint64_t total_spikes(const SpikeLog& log);
/// Index of the first record in which two logs differ, or of the end of the shorter.
std::optional<std::size_t> first_difference(const SpikeLog& a, const SpikeLog& b);

/// A text file, one line a step: number, spikes, hash. @throws std::runtime_error.
void write_log(const std::filesystem::path& path, const SpikeLog& log);
SpikeLog read_log(const std::filesystem::path& path);

}  // namespace spiking
