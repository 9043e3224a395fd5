// The stream of step_delta, read chunk by chunk. docs/format/deltas.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/cpu/processor.h"
#include "codec/step/kernels.h"
#include "codec/step/step_kind.h"
#include "thalia/types.h"

namespace thalia::codec {

/// What has to be read of a stream before StepDecoder can be made, at most.
std::uint64_t step_most_head_bytes(std::uint64_t elements, std::uint64_t stored_bytes) noexcept;

/// Knows head and tables, and where the chunks lie. Immutable: any number of threads.
class StepDecoder {
 public:
  /// @param elements of the tensor.
  /// @param head the stream's first step_most_head_bytes() bytes or more; not kept.
  /// @param stored_bytes of the whole stream.
  /// @throws CompressionError if the head breaks a rule. Allocates no more than `head` has.
  StepDecoder(const StepKind& kind, std::uint64_t elements, ByteSpan head,
              std::uint64_t stored_bytes, VectorSet set = fastest_vector_set());

  struct Chunk {
    std::uint64_t first;  ///< element
    std::uint64_t elements;
    std::uint64_t offset;  ///< of its bytes in the stream
    std::uint64_t length;  ///< of them
  };
  std::uint64_t chunks() const noexcept { return ends_.size(); }
  /// The elements of all chunks but the last.
  std::uint64_t chunk_elements() const noexcept { return std::uint64_t{1} << chunk_log2_; }
  Chunk chunk(std::uint64_t number) const noexcept;

  /// Decodes a whole chunk. @param stored its bytes. @param base, out as many elements as the chunk
  /// has; they may be the same memory, else they do not overlap. @throws CompressionError if the
  /// bytes are not a chunk; then `out` has bytes of no meaning.
  void decode(ByteSpan stored, ByteSpan base, MutableByteSpan out) const;

 private:
  StepModel model_;
  const StepKernels* kernels_;
  std::uint64_t elements_;
  std::uint64_t begin_ = 0;  ///< where the first chunk lies
  std::uint8_t chunk_log2_ = 0;
  std::vector<std::uint64_t> ends_;  ///< where each chunk ends
};

/// A whole tensor in memory, on this thread. `out` may be `base`.
void step_decode(const StepKind& kind, ByteSpan stored, ByteSpan base, MutableByteSpan out,
                 VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
