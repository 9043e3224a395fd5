// What symbols cost, as sums of integers: equal tensors are coded as equal bytes on every machine.
// A cost is in units of 2^-20 bits, so that those of 2^38 elements fit 64 bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/step/kernels.h"
#include "codec/step/step_tables.h"

namespace thalia::codec {

inline constexpr unsigned kCostBits = 20;
inline constexpr std::uint64_t kBitCost = 1u << kCostBits;

/// How often each magnitude occurs.
using StepMagnitudes = std::array<std::uint64_t, kStepMagnitudes>;
using StepClassCounts = std::array<StepMagnitudes, kStepClasses>;

std::uint64_t sum_of(const StepMagnitudes& counts) noexcept;
void add_to(StepMagnitudes& sum, const StepMagnitudes& counts) noexcept;

std::uint64_t frequency_cost(std::uint32_t frequency) noexcept;
/// Extra bits left out, as no table changes them. A magnitude without a frequency costs nothing.
std::uint64_t row_cost(const StepMagnitudes& counts, const StepRow& row) noexcept;
/// What no table can go below.
std::uint64_t entropy_cost(const StepMagnitudes& counts) noexcept;
std::uint64_t extra_cost(const StepMagnitudes& counts, unsigned element_bits) noexcept;

/// The explicit table that costs least, itself included, and what it all costs.
struct CostedRow {
  ExplicitStepRow row;
  std::uint64_t cost = 0;
};
CostedRow cheapest_row(const StepMagnitudes& counts);

/// The level of predefined tables that costs least.
struct CostedLevel {
  std::uint8_t level = 0;
  std::uint64_t cost = 0;
};
CostedLevel cheapest_level(const StepClassCounts& counts);

}  // namespace thalia::codec
