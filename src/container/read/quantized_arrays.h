// The arrays of a quantized tensor, checked, and the elements that come out of them.
// docs/format/format.md, "quantized".
#pragma once

#include <cstdint>
#include <vector>

#include "codec/lossy/quantize.h"
#include "format/payload.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

class QuantizedArrays {
 public:
  /// Elements that restore() makes at a time: the work of one thread.
  static constexpr std::uint64_t kPieceElements = 65536;

  /// `side` and `entry` are ones that validate_quantized_tensor() accepted; `logical` is the
  /// tensor's logical bytes, borrowed. Checks every width and parameter. @throws FormatError naming
  /// the array and the group.
  QuantizedArrays(const format::TensorEntry& entry, const format::QuantizedSideData& side,
                  ByteSpan logical);
  /// The same of arrays that need not come from a file, borrowed. @throws UsageError
  /// (size_mismatch) for arrays that are not as long as the elements ask for.
  QuantizedArrays(DType dtype, std::uint64_t elements, const QuantizedView& arrays);

  std::uint64_t elements() const noexcept { return elements_; }
  std::uint64_t pieces() const noexcept { return starts_.size(); }
  /// Elements of piece i: kPieceElements but for the last one.
  std::uint64_t piece_elements(std::uint64_t i) const noexcept;
  /// The elements of piece i in their own type. Any number of threads may call this and
  /// restore_all().
  void restore(std::uint64_t i, MutableByteSpan out) const;
  /// All elements.
  void restore_all(MutableByteSpan out, unsigned threads) const;

  const QuantizedView& view() const noexcept { return view_; }

  /// What only a verifier checks: padding, and the bits after the last code. @throws FormatError.
  void check_unused_bits() const;

 private:
  void check();
  std::uint64_t group_elements(std::uint64_t group) const noexcept;
  unsigned width(std::uint64_t group) const noexcept;
  codec::UniformScale parameters(std::uint64_t group) const noexcept;
  [[noreturn]] void fail(const char* array, std::uint64_t group, std::string value,
                         std::string bound) const;

  std::uint64_t offset_;  ///< of the payload in the file, for messages
  DType dtype_;
  std::uint64_t elements_;
  QuantizedView view_;
  ByteSpan padding_;                   ///< before the minima
  std::vector<std::uint64_t> starts_;  ///< of the codes of the group that piece i begins in
};

/// The arrays of `parts` in `logical`. `group_size` is not 0 unless there are no elements.
QuantizedView quantized_view(DType dtype, unsigned bits, std::uint64_t group_size,
                             const format::QuantizedParts& parts, ByteSpan logical) noexcept;

}  // namespace thalia::container
