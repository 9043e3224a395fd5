// The numbers that codes stand for, in f32 arithmetic as the original computes them: each is one
// product, rounded once.
#include <array>
#include <cstring>

#include "base/fail.h"
#include "formats/mithril_quantized/parts.h"
#include "state/tensor/counted_tensor.h"

namespace thalia {
namespace formats::mithril_quantized {
namespace {

// QLoRA's levels (Dettmers et al., 2023, appendix E), as f32.
constexpr std::array<float, 16> kNf4Levels{-1.0f,
                                           -0.6961928009986877f,
                                           -0.5250730514526367f,
                                           -0.39491748809814453f,
                                           -0.28444138169288635f,
                                           -0.18477343022823334f,
                                           -0.09105003625154495f,
                                           0.0f,
                                           0.07958029955625534f,
                                           0.16093020141124725f,
                                           0.24611230194568634f,
                                           0.33791524171829224f,
                                           0.44070982933044434f,
                                           0.5626170039176941f,
                                           0.7229568362236023f,
                                           1.0f};

unsigned nibble(ByteSpan codes, std::uint64_t i) {
  const auto byte = std::to_integer<unsigned>(codes[i / 2]);
  return i % 2 == 0 ? byte & 15 : byte >> 4;
}

template <typename Number>
void fill(MutableByteSpan out, const Number& number) {
  for (std::uint64_t i = 0; i < out.size() / sizeof(float); ++i) {
    const float value = number(i);
    std::memcpy(out.data() + i * sizeof(float), &value, sizeof(value));
  }
}

void fill_numbers(const MithrilQuantized& tensor, MutableByteSpan out) {
  if (out.empty()) return;
  const ByteSpan codes = tensor.codes.bytes();
  if (tensor.method == MithrilMethod::nf4) {
    fill(out, [&](std::uint64_t i) {
      return kNf4Levels[nibble(codes, i)] * tensor.scales[i / *tensor.group_size];
    });
  } else if (tensor.method == MithrilMethod::int4) {
    const std::int8_t zero = tensor.zero_points->front();
    fill(out, [&](std::uint64_t i) {
      return static_cast<float>(static_cast<int>(nibble(codes, i)) - zero) * tensor.scales.front();
    });
  } else {
    fill(out, [&](std::uint64_t i) {
      return static_cast<float>(std::to_integer<std::int8_t>(codes[i])) * tensor.scales.front();
    });
  }
}

}  // namespace

Tensor dequantize(const MithrilQuantized& tensor, io::MemoryBudget& budget) {
  if (auto misfit = find_misfit(outline_of(tensor)))
    fail_argument(ErrorCode::bad_argument, misfit->field, misfit->value, misfit->bound);
  return state::counted_tensor(budget, "content", {.dtype = DType::f32, .shape = tensor.shape},
                               [&](MutableByteSpan out) { fill_numbers(tensor, out); });
}

}  // namespace formats::mithril_quantized

Tensor MithrilQuantized::dequantized(const ReadLimits& limits) const {
  io::MemoryBudget budget(limits, codes.bytes().size());
  return formats::mithril_quantized::dequantize(*this, budget);
}

}  // namespace thalia
