// Reads any bytes as a .mst file, all tensors of it, and as the original's wrappers.

#include <span>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/mst.h"

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
    static_cast<void>(unwrap_mithril(bytes, limits));
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace mst_target
}  // namespace

FUZZ_TARGET(mst)
