// A plane of bytes coded by their frequencies: which bytes occur, how often, the states and the
// words. docs/format/format.md, "plane_entropy".
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "codec/rans/code.h"
#include "codec/rans/kernels.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Writes the coded plane to `out` and returns its length, or 0 if it would pass out.size(). A
/// thread keeps its memory from one plane to the next.
/// @param frequencies not 0 for any byte that occurs.
std::size_t code_plane(ByteSpan plane, const RansFrequencies& frequencies,
                       const RansKernels& kernels, MutableByteSpan out);

/// Decodes one plane, some symbols at a time. The coded bytes are borrowed and must outlive it.
class PlaneDecoder {
 public:
  /// @throws CompressionError if there is no plane.
  explicit PlaneDecoder(ByteSpan coded);

  /// The next bytes: a multiple of 32 of them, except in the last call. @throws CompressionError
  /// if the coded bytes run out.
  void decode(MutableByteSpan symbols, const RansKernels& kernels);
  /// The same for two planes, in about half the time if the kernels can do two at once.
  static void decode_two(PlaneDecoder& first, MutableByteSpan symbols, PlaneDecoder& second,
                         MutableByteSpan others, const RansKernels& kernels);
  /// Call it after the last decode(). @throws CompressionError if coded bytes are left.
  void finish() const;

 private:
  RansRun run_into(MutableByteSpan symbols);

  std::unique_ptr<RansDecodeTable> table_;
  std::array<std::uint32_t, kRansStates> states_;
  const std::byte* words_;
  const std::byte* end_;
};

}  // namespace thalia::codec
