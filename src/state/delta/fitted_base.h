// A base's tensor in the shape of the tensor that it is the base of. docs/format/deltas.md,
// "xor_base".
#pragma once

#include <cstdint>
#include <memory>

#include "state/delta/byte_source.h"
#include "thalia/types.h"

namespace thalia::state {

/// A dense tensor of another shape: each element is that of the base at the same index, or zero
/// where the base has no such index. Of the base, only what a part is made of is read.
class FittedBase final : public ByteSource {
 public:
  /// Ranks are equal, and not 0. @param width bytes of an element.
  FittedBase(std::shared_ptr<const ByteSource> base, const Shape& base_shape, const Shape& shape,
             unsigned width);

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override;

 private:
  struct Piece;
  class Gather;

  std::shared_ptr<const ByteSource> base_;
  Shape base_shape_;
  Shape shape_;
  unsigned width_;
  std::uint64_t size_;
};

}  // namespace thalia::state
