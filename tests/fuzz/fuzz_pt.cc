// Reads any bytes as a .pt file, and all tensors of it.

#include <span>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/pt.h"

using namespace thalia;

namespace {
namespace pt_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const PtFile file = PtFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz",
                                           {.input = {.limits = limits}});
    for (const PtTensor& tensor : file.tensors()) {
      try {
        const Tensor read = file.read(tensor.name);
        FUZZ_REQUIRE(read.layout() == tensor.layout);
        if (read.is_dense()) {
          FUZZ_REQUIRE(read.bytes().size() == tensor.layout.shape.byte_length(read.dtype()));
        } else {
          static_cast<void>(read.to_coo().coo());
        }
        file.check(tensor.name);
      } catch (const FormatError&) {
      } catch (const IntegrityError&) {
      } catch (const UnsupportedError&) {
      }
    }
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace pt_target
}  // namespace

FUZZ_TARGET(pt)
