// Lengths that follow from what a head says of a tensor, by the rules of the encodings.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "container/pack/columns.h"
#include "container/pack/head.h"
#include "container/read/tensor_reading.h"
#include "format/chunk.h"
#include "format/constants.h"
#include "format/delta.h"
#include "format/payload.h"
#include "format/tensor.h"

namespace thalia::container {

bool has_step_header(const TensorPlan& tensor) {
  return tensor.spec.encoding == Encoding::step_delta && tensor.chunks.empty();
}

void derive_lengths(TensorPlan& tensor, const ColumnReader& columns) {
  TensorSpec& spec = tensor.spec;
  const auto refuse = [&] {
    columns.fail(fmt::format("{} of shape {}", dtype_name(spec.dtype), spec.shape.to_string()),
                 fmt::format("what {} can hold", encoding_name(spec.encoding)));
  };
  if (!spec.shape.byte_length(spec.dtype) || !spec.shape.element_count()) refuse();
  std::optional<std::uint64_t> length = tensor.logical_length;
  if (is_plain(spec.encoding)) length = format::payload_length(spec.layout());
  if (tensor.delta) {
    const auto result =
        format::payload_length(format::layout_of(*tensor.delta, spec.dtype, spec.shape));
    if (!result) refuse();
    tensor.delta->logical_length = *result;
    if (spec.encoding == Encoding::xor_base) length = result;
    if (spec.encoding == Encoding::sparse_delta) {
      const auto parts = format::sparse_delta_parts(spec.dtype, spec.shape, spec.nnz);
      if (!parts) refuse();
      length = parts->length;
    }
  }
  if (!length) refuse();
  if (has_step_header(tensor) && *length < format::kStepDeltaHeaderLength) refuse();
  tensor.logical_length = *length;
  tensor.stored_length = *length;
  if (tensor.chunks.empty()) return;
  tensor.stored_length = 0;  // of at most 2^26 chunks of 2^32 bytes: it cannot wrap
  std::uint64_t raw_left = tensor.logical_length;
  const std::uint32_t raw = tensor.chunks.front().raw_length;
  for (format::ChunkEntry& chunk : tensor.chunks) {
    chunk.offset = tensor.stored_length;
    chunk.raw_length = static_cast<std::uint32_t>(std::min<std::uint64_t>(raw, raw_left));
    raw_left -= chunk.raw_length;
    tensor.stored_length += chunk.stored_length;
  }
}

}  // namespace thalia::container
