// Decodes any bytes as a stream of step_delta against a base that the input chooses, and takes the
// bytes, as base and what came after it, through the codec and back. Each set of instructions has
// to do the same.

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "codec/step/step_decoder.h"
#include "codec/step/step_encoder.h"
#include "codec/step/step_kind.h"
#include "fuzz/fuzz_target.h"
#include "support/bytes.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace step_target {

using codec::StepKind;
using codec::VectorSet;

using Bytes = std::vector<std::byte>;

constexpr DType kTypes[] = {DType::bf16, DType::f16,     DType::i16,     DType::u8,
                            DType::i8,   DType::f8_e4m3, DType::f8_e5m2, DType::u16};

// Decodes into memory of its own, so that a sanitizer sees a byte too far. Nothing if it is
// refused.
std::optional<Bytes> decoded(const StepKind& kind, ByteSpan stored, ByteSpan base, VectorSet set) {
  Bytes out(base.begin(), base.end());
  try {
    codec::step_decode(kind, stored, out, out, set);
  } catch (const CompressionError&) {
    return std::nullopt;
  }
  return out;
}

Bytes repeated(ByteSpan bytes, std::size_t times) {
  Bytes out;
  for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

void run(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 4;
  if (size < kHead) return;
  const StepKind kind = codec::step_kind(kTypes[data[0] % std::size(kTypes)]).value();
  const std::size_t count = data[1] + std::size_t{256} * data[2];
  const ByteSpan bytes = std::as_bytes(std::span(data + kHead, size - kHead));
  const Bytes base = test::random_bytes(count * kind.bytes, data[3]);
  const std::size_t half = bytes.size() / 2 / kind.bytes * kind.bytes;
  // Several times over, as the kernels count few elements one at a time.
  const std::size_t times = data[3] % 8 == 0 ? 17 : 1;
  const Bytes old = repeated(bytes.first(half), times);
  const Bytes now = repeated(bytes.subspan(half, half), times);
  const auto expected = decoded(kind, bytes, base, VectorSet::portable);
  const Bytes stored = codec::step_encode(kind, old, now, VectorSet::portable);
  for (const VectorSet set : codec::kVectorSets) {
    if (!codec::has_vector_set(set)) continue;
    FUZZ_REQUIRE(decoded(kind, bytes, base, set) == expected);
    FUZZ_REQUIRE(codec::step_encode(kind, old, now, set) == stored);
    const auto back = decoded(kind, stored, old, set);
    FUZZ_REQUIRE(back && std::equal(now.begin(), now.end(), back->begin()));
  }
}

}  // namespace step_target
}  // namespace

FUZZ_TARGET(step)
