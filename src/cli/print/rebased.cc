#include "cli/print/rebased.h"

#include <fmt/format.h>

#include <string>

#include "cli/print/json_result.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

std::string form_of(unsigned depth) {
  return depth == 0 ? "full" : fmt::format("depth {}", depth);
}

}  // namespace

void print_rebased(Output& out, const RebaseResult& result) {
  if (result.files.empty()) {
    out.print("nothing to do\n");
    return;
  }
  using enum Table::Align;
  Table table({{"file"}, {"was"}, {"is"}, {"was", right}, {"is", right}});
  for (const RebasedFile& file : result.files)
    table.add_row({escape(file.path.filename().string()), form_of(file.depth_before),
                   form_of(file.depth), human_bytes(file.bytes_before), human_bytes(file.bytes)});
  table.print(out);
  out.print("{} of {} became {} in {:.2f} s\n", counted(result.files.size(), "file", "files"),
            human_bytes(result.input_bytes), human_bytes(result.output_bytes), result.seconds);
}

void add_rebased(JsonWriter& json, const RebaseResult& result) {
  json.key("files").begin_array();
  for (const RebasedFile& file : result.files) {
    json.begin_object().member("path", as_utf8(file.path.string()));
    json.member("depth_before", file.depth_before).member("depth", file.depth);
    json.member("bytes_before", file.bytes_before).member("bytes", file.bytes);
    json.end_object();
  }
  json.end_array();
  add_sizes_and_time(json, result);
}

}  // namespace thalia::cli
