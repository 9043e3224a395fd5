// Trees of values as JSON texts in which `_type` marks what JSON has no word for.
// docs/format/states.md, "States".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "json/writer.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// Asked first, for every value of a tree: either writes something in the value's place and returns
/// true, or returns false and the value is written as it is. The path begins with the tree's own
/// name. An object of type `python` adds nothing to it: docs/format/states.md, "Values of Python".
using Substitute =
    std::function<bool(JsonWriter& json, const std::string& path, const Value& value)>;

/// Writes the tree as one JSON value. @throws UsageError (bad_argument) with the path for a tensor
/// that `substitute` leaves, and for text that is no UTF-8.
void write_tree(JsonWriter& json, const Value& tree, std::string path,
                const Substitute& substitute = {});

/// The value that an object with a `_type` stands for; nullopt if that type has no meaning.
using Resolve = std::function<std::optional<Value>(std::string_view type, const Value& object)>;

/// Undoes write_tree: `number` and `object` are known here, the other types to `resolve`. @throws
/// FormatError (bad_value) for one of the known types with the wrong members.
Value read_tree(Value tree, const Resolve& resolve = {});

/// True if JSON can hold the tree as it is, and no object of type `python` is in it.
bool is_plain_json(const Value& tree) noexcept;

/// The text that is a member of an object of the format. @throws FormatError (bad_value) naming it.
const std::string& require_text(const Value& object, std::string_view member);

}  // namespace thalia::state
