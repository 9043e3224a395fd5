// Values of a walk as JSON texts of their own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/reader.h"
#include "json/writer.h"

namespace thalia::json {

/// Writes the value as it is: keys in their order, repeated ones too; numbers token by token;
/// strings with the escapes of JsonWriter; no white space.
void copy_value(Value& value, JsonWriter& out);
std::string copied(Value& value);

/// A form for comparing: members are sorted by key, and of several with one key only the last is
/// kept. Equal for texts that differ only in white space, escapes and the order of keys; 1 and 1.0
/// differ.
std::string canonical(Value& value);
/// The canonical form of an object's text. @throws FormatError as walk_object().
std::string canonical_object(std::string_view text, unsigned max_depth);

/// Keys and values, as copied() gives them, of an object in its order. If several members have one
/// key, the last value counts, as in Python.
using Members = std::vector<std::pair<std::string, std::string>>;
/// @throws FormatError as walk_object().
Members members_of(std::string_view text, unsigned max_depth);

}  // namespace thalia::json
