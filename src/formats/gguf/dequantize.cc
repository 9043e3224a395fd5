// Each kernel is compiled twice, for any processor and for AVX2, from one source. Neither has a
// product and a sum in one rounding (-ffp-contract=off, and no FMA), and the unit rounds to nearest
// and keeps subnormals whatever the thread has set: so both give the same bits, those of the
// reference.
#include "formats/gguf/dequantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/cpu/intrinsics.h"
#include "codec/float/environment.h"
#include "formats/gguf/small_blocks.h"
#include "formats/gguf/super_blocks.h"
#include "thalia/formats/gguf.h"

namespace thalia {
namespace formats::gguf {
namespace {

template <typename Block>
void expand_portable(const std::uint8_t* in, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i)
    Block::expand(in + i * Block::kBytes, out + i * Block::kElements);
}

#ifdef __x86_64__
template <typename Block>
THALIA_AVX2 void expand_avx2(const std::uint8_t* in, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i)
    Block::expand(in + i * Block::kBytes, out + i * Block::kElements);
}
#endif

template <typename Block>
Expand kernel(codec::VectorSet set) noexcept {
#ifdef __x86_64__
  if (set != codec::VectorSet::portable) return expand_avx2<Block>;
#endif
  static_cast<void>(set);
  return expand_portable<Block>;
}

// Elements that a thread takes at a time: 1 MiB of numbers, a whole number of any blocks.
constexpr std::size_t kPieceElements = 1u << 18;

}  // namespace

Expand expand_of(GgmlType type, codec::VectorSet set) noexcept {
  switch (type) {
    case GgmlType::q4_0:
      return kernel<BlockQ40>(set);
    case GgmlType::q4_1:
      return kernel<BlockQ41>(set);
    case GgmlType::q5_0:
      return kernel<BlockQ50>(set);
    case GgmlType::q5_1:
      return kernel<BlockQ51>(set);
    case GgmlType::q8_0:
      return kernel<BlockQ80>(set);
    case GgmlType::q2_k:
      return kernel<BlockQ2K>(set);
    case GgmlType::q3_k:
      return kernel<BlockQ3K>(set);
    case GgmlType::q4_k:
      return kernel<BlockQ4K>(set);
    case GgmlType::q5_k:
      return kernel<BlockQ5K>(set);
    case GgmlType::q6_k:
      return kernel<BlockQ6K>(set);
    case GgmlType::q8_k:
      return kernel<BlockQ8K>(set);
    case GgmlType::iq4_nl:
      return kernel<BlockIQ4NL>(set);
    case GgmlType::iq4_xs:
      return kernel<BlockIQ4XS>(set);
    case GgmlType::tq1_0:
      return kernel<BlockTQ10>(set);
    case GgmlType::tq2_0:
      return kernel<BlockTQ20>(set);
    case GgmlType::mxfp4:
      return kernel<BlockMXFP4>(set);
    case GgmlType::nvfp4:
      return kernel<BlockNVFP4>(set);
    case GgmlType::q1_0:
      return kernel<BlockQ10>(set);
    case GgmlType::f32:
    case GgmlType::f16:
    case GgmlType::q8_1:
    case GgmlType::iq2_xxs:
    case GgmlType::iq2_xs:
    case GgmlType::iq3_xxs:
    case GgmlType::iq1_s:
    case GgmlType::iq3_s:
    case GgmlType::iq2_s:
    case GgmlType::i8:
    case GgmlType::i16:
    case GgmlType::i32:
    case GgmlType::i64:
    case GgmlType::f64:
    case GgmlType::iq1_m:
    case GgmlType::bf16:
    case GgmlType::q2_0:
      break;
  }
  return nullptr;
}

}  // namespace formats::gguf

void dequantize_ggml(GgmlType type, ByteSpan blocks, std::span<float> out, unsigned threads) {
  const formats::gguf::Expand expand = formats::gguf::expand_of(type, codec::fastest_vector_set());
  const GgmlTypeFacts* const facts = ggml_type_facts(type);
  if (expand == nullptr) {
    const std::string name = facts != nullptr ? std::string(facts->name)
                                              : std::to_string(static_cast<std::uint32_t>(type));
    throw UnsupportedDtypeError(name, "no dequantizing of this type of blocks",
                                {.field = "type", .value = name});
  }
  const std::size_t count = blocks.size() / facts->block_bytes;
  if (blocks.size() % facts->block_bytes != 0 || out.size() / facts->block_elements != count ||
      out.size() % facts->block_elements != 0) {
    fail_argument(ErrorCode::size_mismatch, "blocks",
                  fmt::format("{} bytes for {} elements", blocks.size(), out.size()),
                  fmt::format("{} bytes for each {}", facts->block_bytes, facts->block_elements));
  }
  const std::size_t per_piece = formats::gguf::kPieceElements / facts->block_elements;
  const auto* const in = reinterpret_cast<const std::uint8_t*>(blocks.data());
  parallel_for((count + per_piece - 1) / per_piece, threads, [&](std::size_t piece) {
    const codec::StandardEnvironment environment;
    const std::size_t begin = piece * per_piece;
    expand(in + begin * facts->block_bytes, std::min(per_piece, count - begin),
           out.data() + begin * facts->block_elements);
  });
}

}  // namespace thalia
