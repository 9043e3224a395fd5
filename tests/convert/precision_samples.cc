#include "convert/precision_samples.h"

#include <cmath>
#include <utility>

#include "checkpoint/checkpoints.h"
#include "codec/float/conversion.h"

namespace thalia::test {

ConvertOptions with_precision(std::string_view policy, SaveOptions save) {
  return {.save = fixed_identity(std::move(save)), .precision = parse_precision_policy(policy)};
}

std::vector<float> weights(std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = 0.02F * std::sin(static_cast<float>(i) * 1.7F);
  return numbers;
}

std::vector<std::byte> as_type(DType from, DType to, ByteSpan bytes) {
  std::vector<std::byte> out(bytes.size() * 8 / dtype_bits(from) * dtype_bits(to) / 8);
  codec::convert_elements(from, to, bytes, out, codec::InstructionSet::portable);
  return out;
}

std::vector<std::byte> payload(const TensorView& view) {
  std::vector<std::byte> bytes(view.logical_bytes());
  view.read(bytes);
  return bytes;
}

std::vector<std::byte> joined(const std::vector<ByteSpan>& parts) {
  std::vector<std::byte> bytes;
  for (const ByteSpan part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

}  // namespace thalia::test
