// Looking into JSON texts that the library has checked already, and showing them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal/output.h"

namespace thalia::cli {

/// The text indented by two spaces a level, its numbers as they are. `margin` comes before
/// every line but the first. All of these @throw FormatError where `json` is no JSON, or not as
/// Python's json module writes it.
std::string pretty_json(std::string_view json, std::string_view margin = "");

/// pretty_json() on an output, line by line: if it were made safe as a whole, its line ends would
/// be escaped as control characters.
void print_pretty_json(Output& out, std::string_view json, std::string_view margin);
/// Under the line "metadata"; "none" where the text is empty.
void print_metadata(Output& out, std::string_view json);
/// A line for each of the first members of an object but its growth_history, long values cut;
/// nothing if there are none.
void print_short_metadata(Output& out, std::string_view json);

/// The value of a member of a JSON object, compact; nullopt if there is none. If several
/// members have one name, the last counts, as in Python.
std::optional<std::string> json_member(std::string_view json, std::string_view key);

}  // namespace thalia::cli
