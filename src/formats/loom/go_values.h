// Values of JSON as Go's encoding/json reads them into fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/reader.h"

namespace thalia::formats::loom {

/// Each leaves `out` as it is for null. @throws FormatError (bad_value) for another kind of value,
/// a number that is no integer, or one that the field has no room for.
void go_value(json::Value& value, std::string_view field, std::int64_t& out);
void go_value(json::Value& value, std::string_view field, std::uint64_t& out);
void go_value(json::Value& value, std::string_view field, double& out);
void go_value(json::Value& value, std::string_view field, float& out);
void go_value(json::Value& value, std::string_view field, bool& out);
void go_value(json::Value& value, std::string_view field, std::string& out);
/// False for null. @throws FormatError (bad_value) for another kind of value.
bool go_object(json::Value& value, std::string_view field);
bool go_array(json::Value& value, std::string_view field);

}  // namespace thalia::formats::loom
