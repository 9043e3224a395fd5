#include "spiking/spike_log.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <stdexcept>

namespace spiking {

void SpikeHash::add_region(std::uint32_t region, std::span<const Spike> spikes) noexcept {
  add(region);
  for (const Spike& spike : spikes) {
    add(spike.neuron);
    add(std::bit_cast<std::uint32_t>(spike.efficacy));
  }
  count_ += spikes.size();
}

std::uint64_t total_spikes(const SpikeLog& log) {
  std::uint64_t sum = 0;
  for (const StepRecord& record : log) sum += record.spikes;
  return sum;
}

std::optional<std::size_t> first_difference(const SpikeLog& a, const SpikeLog& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at.first == a.end() && at.second == b.end()) return std::nullopt;
  return static_cast<std::size_t>(at.first - a.begin());
}

void write_log(const std::filesystem::path& path, const SpikeLog& log) {
  std::ofstream out(path);
  for (const StepRecord& record : log)
    out << std::dec << record.step << ' ' << record.spikes << ' ' << std::hex << record.hash
        << '\n';
  out.close();
  if (!out) throw std::runtime_error(path.string() + ": cannot be written");
}

SpikeLog read_log(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  SpikeLog log;
  StepRecord record;
  while (in >> std::dec >> record.step >> record.spikes >> std::hex >> record.hash)
    log.push_back(record);
  if (!in.eof()) {
    throw std::runtime_error(path.string() + ": line " + std::to_string(log.size() + 1) +
                             " is not a step, a count and a hash");
  }
  return log;
}

}  // namespace spiking
