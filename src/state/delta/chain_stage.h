// What one link of a chain changes of a tensor. docs/format/deltas.md, "Tensors of a delta".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/lossy/low_rank.h"
#include "codec/step/step_decoder.h"
#include "io/system/process.h"
#include "state/delta/stored_bytes.h"
#include "thalia/tensor.h"

namespace thalia::state {

/// Borrows the file. Immutable but for what it remembers; any number of threads.
class ChainStage {
 public:
  /// `number` is that of a tensor with an encoding that changes its base; what the stage keeps
  /// counts in `budget`, which it borrows.
  ChainStage(const detail::OpenFile& file, std::uint32_t number, io::MemoryBudget& budget)
      : stored_(file, number, budget), encoding_(stored_.entry().encoding) {}

  /// Changes the bytes [begin, begin + out.size()) of the base to those of this link. `scratch` is
  /// memory that many calls share. @throws FormatError, IntegrityError.
  void apply(std::uint64_t begin, MutableByteSpan out, std::vector<std::byte>& scratch) const;
  /// The same where the base's bytes lie elsewhere, for a stage that takes_base().
  void apply(std::uint64_t begin, ByteSpan base, MutableByteSpan out,
             std::vector<std::byte>& scratch) const;
  bool takes_base() const noexcept { return encoding_ == Encoding::step_delta; }
  /// Widens a part of the tensor to one that apply() takes: whole chunks of steps.
  /// @throws FormatError, IntegrityError.
  void widen(std::uint64_t& begin, std::uint64_t& end) const;
  /// As PartwiseBytes::prefetch(), for what apply() reads. Lists and factors are read at the begin.
  void prefetch(std::uint64_t begin, std::uint64_t length) const;
  /// Bytes that are best asked for at a time.
  std::uint64_t piece_bytes() const noexcept {
    return encoding_ == Encoding::xor_base ? stored_.piece_bytes() : 1;
  }

 private:
  void apply_difference(std::uint64_t begin, MutableByteSpan out,
                        std::vector<std::byte>& scratch) const;
  void apply_list(std::uint64_t begin, MutableByteSpan out) const;
  void apply_low_rank(std::uint64_t begin, MutableByteSpan out) const;
  const std::vector<std::uint64_t>& pointers() const;
  const codec::StepDecoder& steps() const;
  std::uint64_t tensor_bytes() const;

  StoredTensorBytes stored_;
  Encoding encoding_;
  mutable io::Once once_;
  mutable std::vector<std::uint64_t> pointers_;  ///< of a list, checked
  mutable codec::LowRankFactors factors_;
  mutable std::optional<codec::StepDecoder> steps_;
};

}  // namespace thalia::state
