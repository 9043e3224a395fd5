// Reads any bytes as a quantized tensor of mithril, and as the content of one's frame. What is
// accepted survives being written and read again.

#include <span>
#include <string_view>
#include <vector>

#include "codec/frame/zstd_frame.h"
#include "formats/mithril_quantized/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/mithril.h"

using namespace thalia;

namespace {
namespace mithril_quantized_target {

void read(ByteSpan file) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const MithrilQuantized tensor = decode_mithril_quantized(file, limits);
    FUZZ_REQUIRE(tensor.dequantized().shape() == tensor.shape);
    const MithrilQuantized again =
        decode_mithril_quantized(encode_mithril_quantized(tensor, mithril_quantized_level(file)));
    FUZZ_REQUIRE(again.codes == tensor.codes);
    FUZZ_REQUIRE(again.group_size == tensor.group_size);
    FUZZ_REQUIRE(again.zero_points == tensor.zero_points);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  // Most changes break the frame, so what is in it has a way of its own.
  std::vector<std::byte> frame;
  codec::zstd_encode(1, bytes, frame);
  read(frame);
  try {
    static_cast<void>(formats::mithril_quantized::source_metadata_from_json(
        {reinterpret_cast<const char*>(data), size}, 64));
  } catch (const FormatError&) {
  }
}

}  // namespace mithril_quantized_target
}  // namespace

FUZZ_TARGET(mithril_quantized)
