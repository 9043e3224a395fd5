// The stream of step_delta, made chunk by chunk. A tensor is gone through twice: StepCounts counts,
// choose_step_code() chooses, then each chunk is encoded by itself, by any number of threads with
// an encoder each. The stream is step_head(), then the chunks in their order.
// docs/format/deltas.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/cpu/processor.h"
#include "codec/step/step_code.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Head and tables. @param lengths of the chunks, in bytes; code.chunks() of them.
std::vector<std::byte> step_head(const StepCode& code, std::span<const std::uint32_t> lengths);
/// The bytes that it has.
std::uint64_t step_head_bytes(const StepCode& code) noexcept;

/// Encodes chunks. Keeps its memory from one to the next.
class StepEncoder {
 public:
  StepEncoder(const StepKind& kind, const StepCode& code, VectorSet set = fastest_vector_set());

  /// Appends one chunk to `out` and returns its length. The bytes are code.chunk_elements()
  /// elements, in the last chunk the rest; the code was chosen by a count of them.
  std::uint32_t encode(ByteSpan base, ByteSpan next, std::vector<std::byte>& out);

 private:
  StepModel model_;
  const StepKernels& kernels_;
  std::size_t room_ = 0;  ///< elements that the memory is for
  std::unique_ptr<std::byte[]> words_, extras_;
};

/// A whole tensor in memory, on this thread.
std::vector<std::byte> step_encode(const StepKind& kind, ByteSpan base, ByteSpan next,
                                   VectorSet set = fastest_vector_set());

}  // namespace thalia::codec
