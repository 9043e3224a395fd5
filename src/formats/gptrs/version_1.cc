// Version 1 has no index: each entry comes before its payload, so payloads are in the file
// and do not overlap by themselves.
#include <fmt/format.h>

#include "formats/gptrs/parse.h"

namespace thalia::formats::gptrs {
namespace {

// Without name, extents and payload.
constexpr std::uint64_t kLeastVersion1Entry = 4 + 4 + 4 + 1 + 8;

}  // namespace

void take_version_1(FieldCursor& cursor, const GptrsReadOptions& options, ParsedFile& parsed) {
  const std::uint32_t count = cursor.number<std::uint32_t>("tensor_count");
  check_count("index", count, kLeastVersion1Entry, cursor, options.input.limits);
  parsed.tensors.reserve(count);
  const std::uint64_t file_bytes = cursor.offset() + cursor.left();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t entry = cursor.offset();
    GptrsTensor tensor = take_entry_start(cursor, false, parsed.format == GptrsFormat::checkpoint);
    tensor.stored_bytes = cursor.number<std::uint64_t>("byte_len");
    tensor.offset = cursor.offset();
    static_cast<void>(cursor.take(tensor.stored_bytes, "byte_len"));
    if (options.strict) check_place(tensor, file_bytes, entry);
    parsed.tensors.push_back(std::move(tensor));
  }
}

}  // namespace thalia::formats::gptrs
