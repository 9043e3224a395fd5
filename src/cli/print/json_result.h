// What the results of commands have in common as JSON.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal/escape.h"
#include "cli/terminal/output.h"
#include "inspect/json_members.h"
#include "json/writer.h"

namespace thalia::cli {

/// Prints an object in a line of its own, with the members that fill(json) adds, after the one
/// that says which object it is, and in which version: "thalia.ls.1".
template <typename Fill>
void print_object(Output& out, std::string_view schema, Fill fill) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", schema);
  fill(json);
  json.end_object();
  out.write(text + "\n");
}

using inspect::add_known;
using inspect::add_list;

/// The region that something is in; null if it is in none.
inline void add_region(JsonWriter& json, std::string_view region) {
  json.key("region");
  region.empty() ? json.null() : json.value(as_utf8(region));
}

/// For a file that was made from another.
inline void add_files(JsonWriter& json, std::string_view input, std::string_view output) {
  json.member("input", as_utf8(input)).member("output", as_utf8(output));
}
void add_sizes_and_time(JsonWriter& json, const auto& result) {
  json.member("input_bytes", result.input_bytes).member("output_bytes", result.output_bytes);
  json.member("seconds", result.seconds);
}

/// For a file that was changed in place.
void add_append(JsonWriter& json, const auto& result) {
  json.member("file_bytes", result.file_bytes).member("appended_bytes", result.appended_bytes);
  json.member("dead_bytes", result.dead_bytes).member("generation", result.generation);
  json.member("seconds", result.seconds);
}

}  // namespace thalia::cli
