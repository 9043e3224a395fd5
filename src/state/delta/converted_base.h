// A base's tensor in the element type of the tensor that it is the base of. docs/format/deltas.md,
// "xor_base".
#pragma once

#include <cstdint>
#include <memory>

#include "state/delta/partwise_bytes.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::state {

/// Each element of a dense tensor of f16, bf16, f32 or f64, converted to another of these. Only
/// what a part is made of is read from the base.
class ConvertedBase final : public PartwiseBytes {
 public:
  ConvertedBase(std::shared_ptr<const PartwiseBytes> base, DType from, DType to);

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override;

 private:
  std::shared_ptr<const PartwiseBytes> base_;
  DType from_;
  DType to_;
  std::uint64_t size_;
};

/// True if a dense tensor of one layout can be made from one of the other by converting elements
/// and putting them in their places.
bool can_be_fitted(const TensorLayout& base, const TensorLayout& result) noexcept;

/// Does so, in that order. @param base bytes of a tensor of layout `own`, which can be fitted.
std::shared_ptr<const PartwiseBytes> fitted(std::shared_ptr<const PartwiseBytes> base,
                                            const TensorLayout& own, const TensorLayout& result);

}  // namespace thalia::state
