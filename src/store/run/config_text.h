// A run's configuration as a tree, and trees as texts that people read and change.
#pragma once

#include <string>
#include <vector>

#include "thalia/state/value.h"
#include "thalia/store/config.h"

namespace thalia::store {

/// @throws FormatError as parse_run_config(); UnsupportedError for another version.
RunConfig config_of(const Value& tree);
/// What config_of() reads back as the same.
Value tree_of(const RunConfig& config);

Value list_of(const std::vector<std::string>& texts);

/// The TOML of an object without null in it: tables, and lists of objects as lists of tables.
std::string toml_text(const Value& tree);
/// JSON with a member a line, and a line end.
std::string pretty_json(const Value& tree);

}  // namespace thalia::store
