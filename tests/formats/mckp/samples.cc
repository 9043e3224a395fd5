#include "formats/mckp/samples.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {

std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed, float sigma) {
  const std::vector<std::byte> random = random_bytes(4 * count, seed);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    int sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += std::to_integer<int>(random[4 * i + k]);
    numbers[i] = sigma * (static_cast<float>(sum) - 510.0f) / 148.0f;
  }
  return numbers;
}

Tensor normal_f32(const Shape& shape, std::uint64_t seed) {
  return Tensor::copy_of<float>(shape, normal_numbers(*shape.element_count(), seed));
}

Tensor normal_bf16(const Shape& shape, std::uint64_t seed) {
  std::vector<std::uint16_t> bits;
  for (const float number : normal_numbers(*shape.element_count(), seed)) {
    std::uint32_t word = 0;
    std::memcpy(&word, &number, sizeof(word));
    bits.push_back(static_cast<std::uint16_t>(word >> 16));
  }
  return Tensor::copy_of(DType::bf16, shape, as_byte_span(bits));
}

Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  std::vector<std::byte> bytes = random_bytes(*shape.byte_length(dtype), seed);
  if (dtype == DType::boolean)
    for (std::byte& byte : bytes) byte &= std::byte{1};
  return Tensor::copy_of(dtype, shape, bytes);
}

Tensor sparse_f64(Encoding encoding) {
  const std::vector<double> elements{0, 1.5, 0, 0, 0, 0, 0, 0, -2, 0, 0, 3e300};
  const Tensor dense = Tensor::copy_of<double>({3, 4}, elements);
  return encoding == Encoding::csr ? dense.to_csr() : dense.to_coo();
}

Tensor zero_bytes(const TensorLayout& layout) {
  return Tensor::filled(layout,
                        [](MutableByteSpan bytes) { std::ranges::fill(bytes, std::byte{0}); });
}

std::string mckp_bytes(const NamedTensors& tensors, const MckpWriteOptions& options,
                       const NamedTensors& bases, MckpWriteResult* result) {
  std::string bytes;
  MckpWriter writer([&](ByteSpan piece) { bytes += text_of(piece); }, options);
  for (const auto& [name, tensor] : tensors) {
    std::optional<Tensor> base;
    for (const auto& [base_name, base_tensor] : bases)
      if (base_name == name) base = base_tensor;
    writer.add(name, tensor, base);
  }
  const MckpWriteResult done = writer.commit();
  if (result != nullptr) *result = done;
  return bytes;
}

MckpFile open_bytes(const std::string& bytes, const MckpReadOptions& options) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return MckpFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.mckp", options);
}

}  // namespace thalia::test
