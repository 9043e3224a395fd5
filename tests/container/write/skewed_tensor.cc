#include "container/write/skewed_tensor.h"

#include <bit>
#include <cstring>

#include "codec/cpu/element_layout.h"
#include "support/bytes.h"

namespace thalia::test {
namespace {

std::uint64_t skewed(codec::ElementLayout layout, std::uint64_t noise) {
  const unsigned bits = layout.element_bytes * 8u;
  if (layout.content != codec::Content::floats) return noise >> 61;
  const unsigned mantissa = bits - 1 - layout.exponent_bits;
  // Each exponent half as often as the one above it.
  const auto below = static_cast<unsigned>(std::countr_zero(noise | 0x80));
  const std::uint64_t exponent = (std::uint64_t{1} << (layout.exponent_bits - 1)) - 1 - below;
  const std::uint64_t fraction = (noise >> 8) & ((std::uint64_t{1} << mantissa) - 1);
  return (noise >> 63) << (bits - 1) | exponent << mantissa | fraction;
}

}  // namespace

SampleTensor skewed_tensor(std::string name, DType dtype, Shape shape, std::uint64_t seed) {
  SampleTensor tensor = dense_tensor(std::move(name), dtype, shape, Role::weights, seed);
  const codec::ElementLayout layout = codec::element_layout(dtype);
  if (layout.content == codec::Content::bytes) return tensor;
  const std::size_t width = layout.element_bytes;
  const auto noise = random_bytes(8 * (tensor.payload.size() / width), seed);
  for (std::size_t i = 0; i < tensor.payload.size() / width; ++i) {
    std::uint64_t random;
    std::memcpy(&random, noise.data() + 8 * i, 8);
    const std::uint64_t element = skewed(layout, random);
    for (std::size_t k = 0; k < width; ++k)
      tensor.payload[i * width + k] = static_cast<std::byte>(element >> (8 * k));
  }
  return tensor;
}

}  // namespace thalia::test
