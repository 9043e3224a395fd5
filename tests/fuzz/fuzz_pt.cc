// Reads any bytes as a .pt file, and all tensors of it.

#include <span>

#include "formats/pt/opened.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace pt_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  OpenOptions options;
  options.chain.read.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const auto file =
        formats::pt::open_pt_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", options);
    for (std::size_t i = 0; i < file->tensor_count(); ++i) {
      const AnyTensor& tensor = file->facts().tensors[i];
      try {
        const Tensor read = file->read(i);
        FUZZ_REQUIRE(read.layout() == tensor.layout);
        if (read.is_dense()) {
          FUZZ_REQUIRE(read.bytes().size() == tensor.layout.shape.byte_length(read.dtype()));
        } else {
          static_cast<void>(read.to_coo().coo());
        }
        file->check(i);
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
