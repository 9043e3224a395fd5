#include "codec/step/step_counts.h"

#include <algorithm>
#include <memory>

namespace thalia::codec {

StepCounts::StepCounts(StepKind kind)
    : kind_(kind), counts_(kind.is_float ? kind.exponent_mask + 1u : 1u) {}

void StepCounts::count(ByteSpan base, ByteSpan next, VectorSet set) {
  // Within the 32 bits of the kernels' counts.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const StepKernels& kernels = step_kernels(set);
  const auto part = std::make_unique<StepExponentCounts>();
  const std::size_t width = kind_.bytes, count = base.size() / width;
  for (std::size_t at = 0; at < count; at += kMost) {
    for (auto& symbols : *part) symbols.fill(0);
    kernels.count(kind_, base.data() + at * width, next.data() + at * width,
                  std::min(kMost, count - at), *part);
    for (std::size_t i = 0; i < counts_.size(); ++i)
      for (std::size_t k = 0; k < kStepSymbols; ++k) counts_[i][k] += (*part)[i][k];
  }
}

void StepCounts::add(const StepCounts& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    for (std::size_t k = 0; k < kStepSymbols; ++k) counts_[i][k] += other.counts_[i][k];
}

std::uint64_t StepCounts::elements() const {
  std::uint64_t sum = 0;
  for (const auto& symbols : counts_)
    for (const std::uint64_t count : symbols) sum += count;
  return sum;
}

std::uint64_t StepCounts::changed() const {
  std::uint64_t sum = 0;
  for (const auto& symbols : counts_)
    for (std::size_t k = 1; k < kStepSymbols; ++k) sum += symbols[k];
  return sum;
}

#ifdef __x86_64__
const StepKernels& step_kernels(VectorSet set) noexcept {
  return set == VectorSet::avx512 ? kAvx512Step : kPortableStep;
}
#else
const StepKernels& step_kernels(VectorSet) noexcept {
  return kPortableStep;
}
#endif

}  // namespace thalia::codec
