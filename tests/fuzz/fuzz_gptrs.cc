// Reads any bytes as a GPTRSCHK or GPTRSTEN file in every way that there is, with all tensors. What
// is read can be planned again from what a .thalia file would hold of it, and reads as the same.

#include <span>
#include <string>

#include "formats/gptrs/layout.h"
#include "formats/gptrs/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/gptrs.h"

using namespace thalia;

namespace {
namespace gptrs_target {

void write_again(const GptrsFile& file) {
  namespace gptrs = formats::gptrs;
  const gptrs::GptrsSourceMetadata source = gptrs::source_metadata_of(file);
  const gptrs::FoundSourceMetadata found =
      gptrs::source_metadata_from_json(gptrs::source_metadata_to_json(source), ReadLimits{});
  FUZZ_REQUIRE(found.source && found.rest.empty() && found.source->config == source.config);
  std::vector<gptrs::GptrsPlannedTensor> tensors;
  std::string data;
  for (const GptrsTensor& tensor : file.tensors()) {
    if (tensor.shape.rank() == 0) return;
    tensors.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .requires_grad = tensor.requires_grad,
                       .store_id = tensor.id_stored});
    const Tensor read = file.read(tensor.name);
    data.append(reinterpret_cast<const char*>(read.bytes().data()), read.bytes().size());
  }
  const std::string bytes =
      gptrs::plan_file(file.format(), tensors, found.source->config, true).start + data;
  const GptrsFile again =
      GptrsFile::from_bytes({.bytes = as_byte_span(bytes), .owner = nullptr}, "again");
  FUZZ_REQUIRE(again.tensors().size() == file.tensors().size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    FUZZ_REQUIRE(again.tensors()[i].name == file.tensors()[i].name);
    FUZZ_REQUIRE(again.read_entry(i) == file.read_entry(i));
  }
}

void run_with(ByteSpan bytes, const GptrsReadOptions& options) {
  try {
    const GptrsFile file =
        GptrsFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", options);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      try {
        const Tensor tensor = file.read_entry(i);
        FUZZ_REQUIRE(tensor.bytes().data() >= bytes.data() &&
                     tensor.bytes().data() + tensor.bytes().size() <= bytes.data() + bytes.size());
      } catch (const FormatError&) {
        FUZZ_REQUIRE(!options.strict);
      }
    }
    if (options.strict) write_again(file);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

// As the metadata of a .thalia file, which anybody may have edited.
void run_metadata(std::string_view text) {
  namespace gptrs = formats::gptrs;
  try {
    const gptrs::FoundSourceMetadata found = gptrs::source_metadata_from_json(text, ReadLimits{});
    if (!found.source) return;
    const std::string written = gptrs::source_metadata_to_json(*found.source);
    const gptrs::FoundSourceMetadata again =
        gptrs::source_metadata_from_json(written, ReadLimits{});
    FUZZ_REQUIRE(again.source && again.source->config == found.source->config &&
                 again.source->order == found.source->order &&
                 again.source->requires_grad == found.source->requires_grad);
  } catch (const FormatError&) {
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  run_metadata({reinterpret_cast<const char*>(data), size});
  InputOptions input;
  input.limits.max_allocation_bytes = 1 << 20;
  run_with(bytes, {.input = input});
  run_with(bytes, {.input = input, .version_1 = true, .untagged_config = true});
  run_with(bytes, {.input = input, .strict = false, .version_1 = true, .untagged_config = true});
}

}  // namespace gptrs_target
}  // namespace

FUZZ_TARGET(gptrs)
