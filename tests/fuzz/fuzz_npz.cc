// Reads any bytes as a .npz file and all arrays of it, and as the metadata of one.

#include <span>
#include <string_view>

#include "formats/npz/archive.h"
#include "formats/npz/opened.h"
#include "formats/npz/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace npz_target {

void read_archive(ByteSpan bytes) {
  OpenOptions options;
  options.chain.read.input.limits.max_allocation_bytes = 1 << 20;
  const auto file =
      formats::open_npz_bytes({.bytes = bytes, .owner = nullptr}, "fuzz.npz", options);
  for (std::size_t i = 0; i < file->tensor_count(); ++i) {
    const AnyTensor& array = file->facts().tensors[i];
    FUZZ_REQUIRE(array.offset <= bytes.size());
    FUZZ_REQUIRE(array.stored_bytes <= bytes.size() - *array.offset);
    try {
      FUZZ_REQUIRE(file->read(i).bytes().size() ==
                   *array.layout.shape.byte_length(array.layout.dtype));
    } catch (const FormatError&) {
    } catch (const IntegrityError&) {
    }
  }
  const formats::npz::NpzArchive archive({.bytes = bytes, .owner = nullptr}, options.chain.read);
  const formats::npz::NpzSourceMetadata source = formats::npz::source_metadata_of(archive);
  const formats::npz::NpzSourceMetadata again = formats::npz::source_metadata_from_json(
      formats::npz::source_metadata_to_json("npz", source), 16);
  FUZZ_REQUIRE(again.other_keys.empty() && again.arrays.size() == source.arrays.size());
}

void run(const std::uint8_t* data, std::size_t size) {
  try {
    read_archive(std::as_bytes(std::span(data, size)));
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  } catch (const IntegrityError&) {
  }
  try {
    static_cast<void>(formats::npz::source_metadata_from_json(
        std::string_view(reinterpret_cast<const char*>(data), size), 16));
  } catch (const FormatError&) {
  }
}

}  // namespace npz_target
}  // namespace

FUZZ_TARGET(npz)
