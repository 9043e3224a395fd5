// Reads any bytes as a GGUF file, all tensors of it as they are stored and as numbers, and as the
// metadata of a .thalia file from which a GGUF file is planned.

#include <span>
#include <string>

#include "formats/gguf/source_metadata.h"
#include "formats/gguf/write.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/gguf.h"

using namespace thalia;

namespace {
namespace gguf_target {

void read_tensor(const GgufFile& file, const GgufTensor& tensor) {
  try {
    FUZZ_REQUIRE(file.read(tensor.name).bytes().size() == tensor.bytes.size());
    FUZZ_REQUIRE(file.dequantize(tensor.name, 1).shape().element_count() ==
                 tensor.shape.element_count());
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

// What was read is planned as it was, and comes back from its metadata.
void carry(const GgufFile& file) {
  std::vector<formats::gguf::SourceTensorType> source_types;
  for (const GgufTensor& tensor : file.tensors())
    source_types.push_back({tensor.name, tensor.type, tensor.shape});
  const std::string text = formats::gguf::source_metadata_to_json(file.key_values(), source_types);
  const formats::gguf::GgufSourceMetadata source =
      formats::gguf::source_metadata_from_json(text, 64);
  FUZZ_REQUIRE(source.lost.empty());
  const std::string before =
      formats::gguf::plan_file(file.tensors(), file.key_values(), true).header;
  FUZZ_REQUIRE(formats::gguf::plan_file(file.tensors(), source.key_values, true).header == before);
  FUZZ_REQUIRE(source.tensors.size() == file.tensors().size());
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const GgufFile file = GgufFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", limits);
    for (const GgufTensor& tensor : file.tensors()) {
      FUZZ_REQUIRE(tensor.offset <= size && tensor.bytes.size() <= size - tensor.offset);
      read_tensor(file, tensor);
    }
    carry(file);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const formats::gguf::GgufSourceMetadata source =
        formats::gguf::source_metadata_from_json(text, 64);
    static_cast<void>(formats::gguf::plan_file({}, source.key_values, false));
  } catch (const FormatError&) {
  }
}

}  // namespace gguf_target
}  // namespace

FUZZ_TARGET(gguf)
