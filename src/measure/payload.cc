#include "measure/payload.h"

#include <algorithm>

namespace thalia::measure {

std::string tensor_name(std::uint64_t i) {
  return "layers." + std::to_string(i / 8) + ".w" + std::to_string(i % 8);
}

void add_tensors(Writer& writer, ByteSpan payload, DType dtype, std::uint64_t tensor_bytes) {
  const RegionId region = writer.add_region({.name = "model"});
  const std::uint64_t element_bytes = dtype_bits(dtype) / 8;
  for (std::uint64_t at = 0, i = 0; at < payload.size(); at += tensor_bytes, ++i) {
    const ByteSpan part =
        payload.subspan(at, std::min<std::uint64_t>(tensor_bytes, payload.size() - at));
    writer.add_tensor(
        region, {.name = tensor_name(i), .dtype = dtype, .shape = {part.size() / element_bytes}},
        part);
  }
}

}  // namespace thalia::measure
