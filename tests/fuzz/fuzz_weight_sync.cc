// Applies any bytes to a tensor as a change of slime's and of TRL's, and reads them as the index of
// a version. What is applied and differs is written again, and makes the same state.

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "formats/weight_sync/byte_change.h"
#include "formats/weight_sync/element_change.h"
#include "formats/weight_sync/slime_index.h"
#include "formats/weight_sync/trl_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace weight_sync_target {

using namespace formats::weight_sync;

// Bytes of the tensor: of any element size.
constexpr std::size_t kState = 64;
constexpr std::uint64_t kMost = 1 << 20;

using State = std::array<std::byte, kState>;

void check_frame(ByteEncoding encoding, ByteSpan frame) {
  State after{};
  try {
    io::MemoryBudget budget({.max_allocation_bytes = kMost}, frame.size());
    apply_bytes(encoding, frame, after, budget);
  } catch (const Error&) {
    return;
  }
  const State before{};
  std::vector<std::byte> again;
  const auto take = [&](ByteSpan piece) { again.insert(again.end(), piece.begin(), piece.end()); };
  if (encode_bytes(encoding, before, after, take) == 0) return;
  State applied{};
  io::MemoryBudget budget({.max_allocation_bytes = kMost}, again.size());
  apply_bytes(encoding, again, applied, budget);
  FUZZ_REQUIRE(applied == after);
}

// The first byte is the number of elements.
void check_list(PositionEncoding encoding, DType positions, std::uint64_t width, DType dtype,
                ByteSpan bytes) {
  if (bytes.empty()) return;
  const auto count = static_cast<std::uint64_t>(bytes[0]);
  bytes = bytes.subspan(1);
  const std::uint64_t size = dtype_bits(positions) / 8;
  if (bytes.size() < count * (size + width)) return;
  State after{};
  try {
    apply_elements(encoding, Tensor::copy_of(positions, {count}, bytes.first(count * size)),
                   Tensor::copy_of(dtype, {count}, bytes.subspan(count * size, count * width)),
                   dtype, after);
  } catch (const FormatError&) {
    return;
  }
  const State before{};
  const ElementList list = list_elements(encoding, dtype, before, after);
  if (list.count == 0) return;
  State applied{};
  apply_elements(encoding, Tensor::copy_of(list.position_type, {list.count}, list.positions),
                 Tensor::copy_of(dtype, {list.count}, list.values), dtype, applied);
  FUZZ_REQUIRE(applied == after);
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ByteEncoding encoding : {ByteEncoding::xor_bytes, ByteEncoding::overwrite})
    check_frame(encoding, bytes);
  check_list(PositionEncoding::raw, DType::i32, 2, DType::bf16, bytes);
  check_list(PositionEncoding::gap_delta, DType::u16, 1, DType::f8_e4m3, bytes);
  check_list(PositionEncoding::gap_delta, DType::u32, 4, DType::f32, bytes);
  try {
    const auto index = parse_slime_index(text, 64);
    if (index) FUZZ_REQUIRE(index->base_version < index->version);
  } catch (const FormatError&) {
  }
  const auto step = trl_step(text);
  if (step) FUZZ_REQUIRE(text.starts_with("step_"));
}

}  // namespace weight_sync_target
}  // namespace

FUZZ_TARGET(weight_sync)
