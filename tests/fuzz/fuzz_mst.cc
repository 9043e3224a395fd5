// Reads any bytes as a .mst file, all tensors of it, as the original's wrappers, and as metadata
// that a .mst file is made with.

#include <span>
#include <string_view>

#include "formats/mst/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/mithril.h"

using namespace thalia;

namespace {
namespace mst_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const MstFile file = MstFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", limits);
    for (const MstTensor& tensor : file.tensors()) {
      FUZZ_REQUIRE(tensor.offset <= size && tensor.compressed_size <= size - tensor.offset);
      try {
        FUZZ_REQUIRE(file.read(tensor.name).bytes().size() == tensor.uncompressed_size);
      } catch (const FormatError&) {
      }
    }
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  try {
    const formats::mst::MstSourceMetadata source =
        formats::mst::source_metadata_from_json({reinterpret_cast<const char*>(data), size}, 64);
    for (const std::size_t place : source.header_order) FUZZ_REQUIRE(place < source.order.size());
  } catch (const FormatError&) {
  }
  try {
    static_cast<void>(unwrap_mithril(bytes, limits));
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace mst_target
}  // namespace

FUZZ_TARGET(mst)
