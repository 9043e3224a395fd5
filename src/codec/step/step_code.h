// How a tensor is coded: which tables, how many states, chunks of which size.
// docs/format/deltas.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/step/step_counts.h"
#include "codec/step/step_tables.h"

namespace thalia::codec {

inline constexpr std::uint8_t kStepExplicit = 255;

inline std::uint64_t step_chunks(std::uint64_t elements, unsigned chunk_log2) noexcept {
  return (elements >> chunk_log2) + ((elements & ((std::uint64_t{1} << chunk_log2) - 1)) != 0);
}

struct StepCode {
  std::uint8_t table = 0;  ///< a level of the predefined tables, or kStepExplicit
  std::uint8_t first_class = 0;
  std::uint8_t lanes_log2 = 0;
  std::uint8_t chunk_log2 = 12;
  StepRows rows{};
  std::vector<std::byte> explicit_tables;  ///< as they are stored; none of predefined ones
  std::uint64_t elements = 0;
  /// What it all takes, head and tables included, to within a few bytes a chunk.
  std::uint64_t expected_bytes = 0;

  std::uint64_t chunk_elements() const noexcept { return std::uint64_t{1} << chunk_log2; }
  std::uint64_t chunks() const noexcept { return step_chunks(elements, chunk_log2); }
};

/// The cheapest, by exact cost. The same on every machine.
StepCode choose_step_code(const StepCounts& counts);

}  // namespace thalia::codec
