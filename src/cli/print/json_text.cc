#include "cli/print/json_text.h"

#include <algorithm>

#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "json/copy.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::cli {
namespace {

// What the library has read within its limits is shown whatever its depth, and as version 0.1 may
// have it.
constexpr unsigned kDepth = json::kDepthCeiling;
constexpr json::Dialect kDialect = json::Dialect::python;

// Nothing where the text is empty, or no object.
void for_each_member(std::string_view json, const json::MemberVisitor& visit) {
  if (json.empty()) return;
  json::walk_value(
      json, kDepth,
      [&](json::Value& value) {
        if (value.kind() == json::Kind::object) value.for_each_member(visit);
      },
      kDialect);
}

}  // namespace

std::string pretty_json(std::string_view json, std::string_view margin) {
  std::string text;
  JsonWriter out(text, JsonIndent{.margin = margin});
  json::walk_value(
      json, kDepth, [&](json::Value& value) { json::copy_value(value, out); }, kDialect);
  return text;
}

void print_pretty_json(Output& out, std::string_view json, std::string_view margin) {
  const std::string text = pretty_json(json, margin);
  for (std::size_t begin = 0; begin <= text.size() && !out.closed();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out.write(escape(std::string_view(text).substr(begin, end - begin)) + "\n");
    begin = end + 1;
  }
}

void print_metadata(Output& out, std::string_view json) {
  if (json.empty()) return out.line("metadata", "none");
  out.write("metadata\n  ");
  print_pretty_json(out, json, "  ");
}

void print_short_metadata(Output& out, std::string_view json) {
  constexpr std::size_t kShownMembers = 8, kLongest = 100;
  std::size_t members = 0;
  for_each_member(json, [&](std::string_view key, json::Value& value) {
    if (key == "growth_history") return;
    if (members == 0) out.write("metadata\n");
    if (++members > kShownMembers) return;
    const std::string name = cut_in_middle(key);
    const std::size_t left = kLongest - std::min(kLongest / 2, name.size());
    out.print("  {}: {}\n", name, cut_in_middle(json::copied(value), left));
  });
  if (members > kShownMembers)
    out.print("  and {} more, which --metadata shows\n", grouped(members - kShownMembers));
}

std::optional<std::string> json_member(std::string_view json, std::string_view key) {
  std::optional<std::string> found;
  for_each_member(json, [&](std::string_view name, json::Value& value) {
    if (name == key) found = json::copied(value);
  });
  return found;
}

}  // namespace thalia::cli
