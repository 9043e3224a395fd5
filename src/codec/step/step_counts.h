// How often which steps occur in a tensor: what the choice of its code is made by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/cpu/processor.h"
#include "codec/step/kernels.h"
#include "codec/step/step_kind.h"
#include "thalia/types.h"

namespace thalia::codec {

/// How often each symbol occurs at each exponent field of the base. Threads count parts each into
/// one of their own, and add them up.
class StepCounts {
 public:
  explicit StepCounts(StepKind kind);

  /// Counts elements, whole ones and as many of both.
  void count(ByteSpan base, ByteSpan next, VectorSet set = fastest_vector_set());
  void add(const StepCounts& other);

  const StepKind& kind() const noexcept { return kind_; }
  std::uint64_t elements() const;
  std::uint64_t changed() const;
  /// Exponent fields of the kind: 1 of integers.
  std::size_t exponents() const noexcept { return counts_.size(); }
  const std::array<std::uint64_t, kStepSymbols>& at(std::size_t exponent) const {
    return counts_[exponent];
  }

 private:
  StepKind kind_;
  std::vector<std::array<std::uint64_t, kStepSymbols>> counts_;
};

}  // namespace thalia::codec
