// Looking into JSON texts that the library has checked already, without building a tree of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/output.h"

namespace thalia::cli {

/// The text indented by two spaces a level, its tokens as they are. `margin` stands in front of
/// every line but the first.
std::string pretty_json(std::string_view json, std::string_view margin = "");

/// pretty_json() on an output, line by line: if it were made safe as a whole, its line ends would
/// be escaped as control characters.
void print_pretty_json(Output& out, std::string_view json, std::string_view margin);
/// Under the line "metadata"; "none" where the text is empty.
void print_metadata(Output& out, std::string_view json);
/// A line for each of the first members of an object but its growth_history, long values cut;
/// nothing where there are none.
void print_short_metadata(Output& out, std::string_view json);

/// The text without white space between its tokens.
std::string compact_json(std::string_view json);

/// The value of a member of a JSON object, verbatim; nullopt where there is none, or where `json`
/// is no object. Of members with one name the last counts, as in Python. Keys that are written with
/// escapes do not match.
std::optional<std::string_view> json_member(std::string_view json, std::string_view key);

/// The elements of a JSON array, verbatim; nullopt where `json` is none.
std::optional<std::vector<std::string_view>> json_elements(std::string_view json);

}  // namespace thalia::cli
