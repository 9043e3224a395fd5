// Elements are read in blocks and printed one by one, so that the text of a large tensor never
// is in memory as a whole. Nesting follows the shape of the slice.
#include "cli/tensor/array_json.h"

#include <fmt/format.h>

#include <string>

#include "cli/print/tensor_table.h"
#include "cli/tensor/element.h"
#include "cli/tensor/element_stream.h"
#include "inspect/block_cursor.h"
#include "json/writer.h"
#include "state/tensor/slice.h"

namespace thalia::cli {
namespace {

void open_object(Output& out, const inspect::OpenedTensor& source, const Slice& slice,
                 std::string_view last_key) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", "thalia.cat.1");
  add_identity(json, source.region, source.name, source.layout);
  json.member("encoding", encoding_name(source.layout.encoding));
  json.key("slice").begin_array();
  for (const auto [begin, end] : slice.ranges)
    json.begin_array().value(begin).value(end).end_array();
  json.end_array().key(last_key);
  out.write(text);
}

void print_dimension(Output& out, const Shape& shape, unsigned d, ElementStream& stream) {
  if (d == shape.rank()) {
    std::string text;
    if (const auto element = stream.next()) append_json(text, *element);
    out.write(text);
    return;
  }
  out.write("[");
  for (std::uint64_t i = 0; i < shape[d] && !out.closed(); ++i) {
    if (i > 0) out.write(",");
    print_dimension(out, shape, d + 1, stream);
  }
  out.write("]");
}

}  // namespace

void print_array_json(Output& out, const inspect::OpenedTensor& source, const Slice& slice) {
  open_object(out, source, slice, "values");
  if (state::range_elements(slice.ranges) == 0) {
    out.write("[]");
  } else {
    ElementStream stream(source, slice.ranges);
    print_dimension(out, slice.shape, 0, stream);
  }
  out.write("}\n");
}

void print_entries_json(Output& out, const inspect::OpenedTensor& source, const Slice& slice) {
  open_object(out, source, slice, "entries");
  const ByteSpan values = source.entries->values();
  std::string_view separator = "[";
  source.entries->visit(slice.ranges, [&](std::span<const std::uint64_t> at, std::uint64_t entry) {
    std::string text = fmt::format("{}[{},", separator, fmt::join(at, ","));
    append_json(text, decode_element(source.layout.dtype, values, entry));
    out.write(text + "]");
    separator = ",";
    return !out.closed();
  });
  out.write(separator == "[" ? "[]}\n" : "]}\n");
}

}  // namespace thalia::cli
