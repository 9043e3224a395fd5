// Costs are sums of whole numbers, and logarithms are made of them digit by digit, so that no
// machine rounds another way: what is cheapest is so everywhere.
#include "codec/step/step_cost.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace thalia::codec {
namespace {

// log2(value) for a value from 1 on, rounded down.
std::uint64_t log2_cost(std::uint64_t value) noexcept {
  const auto whole = static_cast<unsigned>(std::bit_width(value)) - 1;
  // 1 to 2 in 31 bits; squaring it gives one digit of the logarithm after the other.
  std::uint64_t part = whole <= 31 ? value << (31 - whole) : value >> (whole - 31);
  std::uint64_t digits = 0;
  for (unsigned i = 0; i < kCostBits; ++i) {
    part = part * part >> 31;
    digits <<= 1;
    if (part >> 32 != 0) {
      part >>= 1;
      digits |= 1;
    }
  }
  return whole * kBitCost + digits;
}

using RowCosts = std::array<std::uint64_t, kStepMagnitudes>;

RowCosts costs_of(const StepRow& row) noexcept {
  RowCosts costs{};
  costs[0] = frequency_cost(static_cast<std::uint32_t>(step_rest(row)));
  for (std::size_t i = 0; i < row.size(); ++i)
    costs[i + 1] = row[i] == 0 ? 0 : frequency_cost(row[i]);
  return costs;
}

std::uint64_t cost_of(const StepMagnitudes& counts, const RowCosts& costs) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * costs[i];
  return sum;
}

const std::array<RowCosts, kStepPredefined>& predefined_costs() {
  static const std::array<RowCosts, kStepPredefined> costs = [] {
    std::array<RowCosts, kStepPredefined> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = costs_of(kStepRows[i]);
    return made;
  }();
  return costs;
}

}  // namespace

std::uint64_t sum_of(const StepMagnitudes& counts) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

void add_to(StepMagnitudes& sum, const StepMagnitudes& counts) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
}

std::uint64_t frequency_cost(std::uint32_t frequency) noexcept {
  return kStepScaleBits * kBitCost - log2_cost(frequency);
}

std::uint64_t row_cost(const StepMagnitudes& counts, const StepRow& row) noexcept {
  return cost_of(counts, costs_of(row));
}

std::uint64_t entropy_cost(const StepMagnitudes& counts) noexcept {
  const std::uint64_t sum = sum_of(counts);
  if (sum == 0) return 0;
  const std::uint64_t whole = log2_cost(sum);
  std::uint64_t cost = 0;
  for (const std::uint64_t count : counts)
    if (count != 0) cost += count * (whole - log2_cost(count));
  return cost;
}

std::uint64_t extra_cost(const StepMagnitudes& counts, unsigned element_bits) noexcept {
  std::uint64_t bits = counts[kStepEscape] * element_bits;
  for (std::size_t i = 0; i < kStepEscape; ++i) bits += counts[i] * kStepExtraBits[i];
  return bits * kBitCost;
}

// Begins below the shares of the magnitudes, which leaves "no change" what it needs, and moves each
// frequency up or down as long as that costs less.
CostedRow cheapest_row(const StepMagnitudes& counts) {
  const std::uint64_t total = sum_of(counts);
  CostedRow absent;
  absent.cost = kBitCost + row_cost(counts, absent.row.row());
  if (total == counts[0]) return absent;
  CostedRow out{.row = {.is_present = true}};
  auto& digits = out.row.digits;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::uint64_t count = counts[i + 1];
    if (count == 0) continue;
    const std::uint64_t both = i + 1 == kStepEscape ? total : 2 * total;
    digits[i] = StepDigits::below(count * kStepScale / both);
  }
  // Each of several magnitudes that were raised to 1 may be what is too much: the largest gives it.
  std::int32_t rest = step_rest(out.row.row());
  for (; rest < 1; rest = step_rest(out.row.row())) {
    const auto largest = std::max_element(
        digits.begin(), digits.end(),
        [](const StepDigits& a, const StepDigits& b) { return a.value() < b.value(); });
    *largest = largest->next_below();
  }
  // What one magnitude with a frequency costs, and of "no change" with what is left.
  const auto magnitude_cost = [&](std::size_t i, const StepDigits& other) {
    return other.bits() * kBitCost +
           (other.length == 0 ? 0 : counts[i + 1] * frequency_cost(other.value()));
  };
  const auto rest_cost = [&](std::int32_t left) {
    return counts[0] * frequency_cost(static_cast<std::uint32_t>(left));
  };
  constexpr int kMostRounds = 4;
  bool is_better = true;
  for (int round = 0; round < kMostRounds && is_better; ++round) {
    is_better = false;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].length == 0) continue;
      const std::int32_t times = i + 1 == kStepEscape ? 1 : 2;
      for (const StepDigits& other : {digits[i].next_above(), digits[i].next_below()}) {
        const std::int32_t left = rest + times * (static_cast<std::int32_t>(digits[i].value()) -
                                                  static_cast<std::int32_t>(other.value()));
        if (left < 1 || magnitude_cost(i, other) + rest_cost(left) >=
                            magnitude_cost(i, digits[i]) + rest_cost(rest))
          continue;
        digits[i] = other;
        rest = left;
        is_better = true;
      }
    }
  }
  out.cost = kBitCost + rest_cost(rest);
  for (std::size_t i = 0; i < digits.size(); ++i) out.cost += magnitude_cost(i, digits[i]);
  return absent.cost <= out.cost ? absent : out;
}

CostedLevel cheapest_level(const StepClassCounts& counts) {
  std::array<std::array<std::uint64_t, kStepPredefined>, kStepClasses> costs{};
  for (std::size_t i = 0; i < kStepClasses; ++i) {
    if (sum_of(counts[i]) == 0) continue;
    for (std::size_t k = 0; k < kStepPredefined; ++k)
      costs[i][k] = cost_of(counts[i], predefined_costs()[k]);
  }
  CostedLevel best{.cost = std::numeric_limits<std::uint64_t>::max()};
  for (std::uint8_t level = 0; level < kStepLevels; ++level) {
    std::uint64_t cost = 0;
    for (std::size_t i = 0; i < kStepClasses; ++i) cost += costs[i][step_row_of(level, i)];
    if (cost < best.cost) best = {level, cost};
  }
  return best;
}

}  // namespace thalia::codec
