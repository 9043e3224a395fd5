// A training that publishes states, for tests of what follows it.
#pragma once

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "store/runs.h"
#include "thalia/store/follow.h"

namespace thalia::test {

using Names = std::vector<std::string>;
using namespace std::chrono_literals;

inline constexpr auto kNow = 0ms;
inline constexpr auto kSoon = 60s;  // far beyond what it takes: nothing is measured

inline RunConfig config_of_deltas(DeltaPolicy policy) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = std::nullopt;
  config.deltas = policy;
  return config;
}
inline constexpr DeltaPolicy kMixed{.kind = DeltaPolicy::Kind::every, .full_every = 3};
inline constexpr DeltaPolicy kOneChain{.kind = DeltaPolicy::Kind::every, .full_every = 60};

// A run, and what was saved in it.
struct Training : TemporaryRun {
  explicit Training(const DeltaPolicy& policy = kOneChain)
      : TemporaryRun(config_of_deltas(policy)) {}
  explicit Training(const RunConfig& config) : TemporaryRun(config) {}

  void save(std::uint64_t step, bool all_changes = false) {
    writer().save("train", step, states[step] = brain_of(step, all_changes));
  }
  std::filesystem::path file(std::uint64_t step) const {
    return phase() / run().file_name("train", step);
  }
  bool holds(const FollowedState& state, std::uint64_t step) const {
    const BrainState& brain = states.at(step);
    const BrainRegion& region = brain.regions.at("model");
    for (const char* const name : {"w", "b"}) {
      const ByteSpan a = state.at("model", name).bytes();
      const ByteSpan b = region.weights().at(name).as_tensor().bytes();
      if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size()) != 0) return false;
    }
    return state.step() == step;
  }

  std::map<std::uint64_t, BrainState> states;
};

inline FollowOptions telling(Names& warnings, FollowOptions options = {}) {
  options.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  return options;
}

inline void put(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path beside = path.parent_path() / ".being-written";
  write_file(beside, bytes);
  std::filesystem::rename(beside, path);
}

}  // namespace thalia::test
