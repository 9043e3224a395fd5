// What a checkpoint's metadata says of the run: a flat JSON object, for people and for resuming.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spiking {

struct RunMetadata {
  std::uint64_t neurons = 0;
  std::uint64_t synapses = 0;
  std::uint64_t seed = 0;  ///< key of the random numbers
  std::uint64_t step = 0;  ///< next to run, and counter of the random numbers
};

std::string to_json(const RunMetadata& metadata);
/// Reads what to_json() wrote. @throws std::runtime_error naming a missing number.
RunMetadata run_metadata_from_json(std::string_view json);

}  // namespace spiking
