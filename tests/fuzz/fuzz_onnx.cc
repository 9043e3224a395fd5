// Reads any bytes as an ONNX model, and all tensors of it, and as the metadata of a .thalia file
// that is written as one.

#include <span>
#include <string_view>

#include "format/payload.h"
#include "formats/onnx/file.h"
#include "formats/onnx/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/onnx.h"

using namespace thalia;

namespace {
namespace onnx_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  formats::onnx::OnnxReadOptions options;
  options.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const formats::onnx::OnnxFile file =
        formats::onnx::OnnxFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", options);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      const formats::onnx::OnnxTensor& tensor = file.tensors()[i];
      try {
        const Tensor read = file.read(i);
        FUZZ_REQUIRE(read.layout() == tensor.layout);
        FUZZ_REQUIRE(read.bytes().size() == format::payload_length(tensor.layout));
        if (!read.is_dense()) static_cast<void>(read.coo());
      } catch (const FormatError&) {
      } catch (const UnsupportedError&) {
      }
    }
    // What a source says, a sink takes as it is.
    const formats::onnx::OnnxSourceMetadata source = formats::onnx::source_metadata_from_json(
        formats::onnx::source_metadata_to_json(
            {.model = file.model(), .metadata = file.metadata(), .external_data = true}),
        256);
    FUZZ_REQUIRE(source.model == file.model() && source.metadata == file.metadata());
    FUZZ_REQUIRE(source.losses.empty());
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  try {
    static_cast<void>(formats::onnx::source_metadata_from_json(
        std::string_view(reinterpret_cast<const char*>(data), size), 256));
  } catch (const FormatError&) {
  }
}

}  // namespace onnx_target
}  // namespace

FUZZ_TARGET(onnx)
