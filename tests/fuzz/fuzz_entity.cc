// Reads any bytes as a .entity file, all of its blobs, and the network, and saves that again: what
// was saved twice is read back to the same.

#include <span>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/loom.h"

using namespace thalia;

namespace {
namespace entity_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const EntityFile file =
        EntityFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", limits);
    for (std::size_t i = 0; i < file.blobs().size(); ++i) {
      const EntityBlob& blob = file.blobs()[i];
      FUZZ_REQUIRE(blob.offset <= size && blob.length <= size - blob.offset);
      try {
        static_cast<void>(decode_loom_q4_0(file.blob_bytes(i).bytes, {}, limits));
        static_cast<void>(decode_loom_bitnet(file.blob_bytes(i).bytes, limits));
      } catch (const FormatError&) {
      }
    }
    const LoomNetwork network = file.network();
    for (const LoomLayer& layer : network.layers) static_cast<void>(loom_master(layer, limits));
    // An RMSNorm is saved as f32 under its old type, which the next save no longer knows.
    std::vector<std::byte> saved = entity_bytes(network);
    const auto again = [&] {
      return entity_bytes(
          EntityFile::from_bytes({.bytes = saved, .owner = nullptr}, "saved").network());
    };
    saved = again();
    FUZZ_REQUIRE(again() == saved);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  } catch (const UsageError& error) {
    // Weights that are no numbers have a scale that JSON does not have.
    FUZZ_REQUIRE(error.code() == ErrorCode::bad_argument);
  }
}

}  // namespace entity_target
}  // namespace

FUZZ_TARGET(entity)
