// Steps as a file has them. The decoder keeps 8 bytes a chunk, whose lengths of 4 bytes are in the
// payload, and nothing is allocated for chunks that are not. docs/format/deltas.md, "step_delta".
#include "container/read/step_delta.h"

#include "codec/step/step_kind.h"
#include "format/payload.h"
#include "thalia/error.h"

namespace thalia::container {
namespace {

std::uint64_t elements_of(const format::TensorEntry& entry) {
  return *format::shape_of(entry).element_count();
}

// Codecs know only their own stream; the section of the file is added here.
template <typename Action>
auto in_payload(Action action) {
  try {
    return action();
  } catch (Error& error) {
    error.add_section("payload");
    throw;
  }
}

}  // namespace

std::uint64_t step_head_bytes(const format::TensorEntry& entry) noexcept {
  return codec::step_most_head_bytes(elements_of(entry), entry.logical_length);
}

codec::StepDecoder read_step_delta(const format::TensorEntry& entry, ByteSpan head,
                                   io::MemoryBudget& budget) {
  budget.take("payload", 2 * std::uint64_t{head.size()});
  return in_payload([&] {
    return codec::StepDecoder(*codec::step_kind(entry.dtype), elements_of(entry), head,
                              entry.logical_length);
  });
}

void decode_steps(const codec::StepDecoder& decoder, ByteSpan stored, ByteSpan base,
                  MutableByteSpan out) {
  in_payload([&] { decoder.decode(stored, base, out); });
}

}  // namespace thalia::container
