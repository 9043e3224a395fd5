#include "codec/step/step_code.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "codec/step/step_cost.h"

namespace thalia::codec {
namespace {

// Up and down together.
StepMagnitudes magnitudes_at(const StepCounts& counts, std::size_t exponent) noexcept {
  const auto& symbols = counts.at(exponent);
  StepMagnitudes out{};
  out[0] = symbols[0];
  for (std::size_t i = 1; i < kStepEscape; ++i) out[i] = symbols[2 * i - 1] + symbols[2 * i];
  out[kStepEscape] = symbols[kStepSymbols - 1];
  return out;
}

// The least exponent of the base; where they span more than the classes, the one from which on
// classes tell most, as all below are one with the first, and all above with the last.
std::uint8_t choose_first_class(const std::array<StepMagnitudes, kStepExponents>& at) {
  std::size_t least = kStepExponents, most = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (sum_of(at[i]) == 0) continue;
    least = std::min(least, i);
    most = i;
  }
  if (least >= most) return static_cast<std::uint8_t>(least % kStepExponents);
  std::uint64_t best_cost = std::numeric_limits<std::uint64_t>::max();
  std::size_t best = least;
  for (std::size_t first = least; first == least || first + kStepClasses <= most + 1; ++first) {
    StepMagnitudes low{}, high{};
    std::uint64_t cost = 0;
    for (std::size_t i = least; i <= most; ++i) {
      if (i <= first) {
        add_to(low, at[i]);
      } else if (i < first + kStepClasses - 1) {
        cost += entropy_cost(at[i]);
      } else {
        add_to(high, at[i]);
      }
    }
    cost += entropy_cost(low) + entropy_cost(high);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = first;
  }
  return static_cast<std::uint8_t>(best);
}

struct ExplicitTables {
  StepRows rows{};
  std::vector<std::byte> bytes;
  std::uint64_t cost = 0;  ///< of all elements and the bytes
};

ExplicitTables choose_tables(const StepClassCounts& counts) {
  std::vector<ExplicitStepRow> chosen;
  std::size_t classes = 1;
  for (std::size_t i = 0; i < kStepClasses; ++i) {
    chosen.push_back(cheapest_row(counts[i]).row);
    // Classes of no change at the end share the table of the first of them.
    if (chosen[i].is_present) classes = std::min(i + 2, kStepClasses);
  }
  chosen.resize(classes);
  ExplicitTables out;
  out.bytes = write_step_rows(chosen);
  out.cost = 8 * kBitCost * out.bytes.size();
  for (std::size_t i = 0; i < kStepClasses; ++i) {
    out.rows[i] = chosen[std::min(i, classes - 1)].row();
    out.cost += row_cost(counts[i], out.rows[i]);
  }
  return out;
}

// Chunks of 2^18 elements, of up to 2^20 where they would be very short. Two bytes of each state
// say nothing: the most lanes for which these are a 96th of a chunk, or of a 512th of its elements.
void choose_shape(StepCode& code, const StepKind& kind, std::uint64_t payload_bytes) {
  constexpr std::uint8_t kUsualChunkLog2 = 18, kMostChunkLog2 = 20;
  constexpr std::uint64_t kShortChunk = 16 << 10, kLaneShare = 96, kRawShare = 512;
  code.chunk_log2 = kUsualChunkLog2;
  while (code.chunk_log2 < kMostChunkLog2 && code.chunks() > 1 &&
         payload_bytes / code.chunks() < kShortChunk)
    ++code.chunk_log2;
  if (code.elements == 0) return;
  const std::uint64_t raw_bytes = std::min(code.elements, code.chunk_elements()) * kind.bytes;
  const std::uint64_t bytes = std::max(payload_bytes / code.chunks(), raw_bytes / kRawShare);
  for (const std::uint8_t lanes_log2 : {std::uint8_t{5}, std::uint8_t{4}, std::uint8_t{3}}) {
    if ((std::uint64_t{2} << lanes_log2) * kLaneShare > bytes) continue;
    code.lanes_log2 = lanes_log2;
    break;
  }
}

}  // namespace

StepCode choose_step_code(const StepCounts& counts) {
  std::array<StepMagnitudes, kStepExponents> at{};
  for (std::size_t i = 0; i < counts.exponents(); ++i) at[i] = magnitudes_at(counts, i);
  StepCode code;
  code.first_class = choose_first_class(at);
  StepClassCounts classes{};
  std::uint64_t extras = 0;
  for (std::size_t i = 0; i < counts.exponents(); ++i) {
    const std::size_t above = i <= code.first_class ? 0 : i - code.first_class;
    add_to(classes[std::min(above, kStepClasses - 1)], at[i]);
    extras += extra_cost(at[i], counts.kind().bits());
    code.elements += sum_of(at[i]);
  }
  const CostedLevel level = cheapest_level(classes);
  code.table = level.level;
  code.rows = predefined_step_rows(level.level);
  std::uint64_t cost = level.cost;
  if (ExplicitTables tables = choose_tables(classes); tables.cost < level.cost) {
    code.table = kStepExplicit;
    code.rows = tables.rows;
    code.explicit_tables = std::move(tables.bytes);
    cost = tables.cost - 8 * kBitCost * code.explicit_tables.size();
  }
  const std::uint64_t payload_bytes = (cost + extras) / (8 * kBitCost);
  choose_shape(code, counts.kind(), payload_bytes);
  const std::uint64_t chunks = code.chunks();
  // A state's 16 higher bits are worth half of them at the end of a chunk, on average.
  code.expected_bytes = 4 + (chunks > 1 ? 4 * chunks : 0) + code.explicit_tables.size() +
                        payload_bytes + chunks * (std::uint64_t{3} << code.lanes_log2);
  return code;
}

}  // namespace thalia::codec
