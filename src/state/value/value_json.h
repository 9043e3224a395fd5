// Values from JSON texts of any dialect.
#pragma once

#include <string_view>

#include "json/reader.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// As thalia::parse_json(). Strings of the Python dialect may hold lone surrogates, as three bytes
/// each that are no UTF-8.
Value parse_json(std::string_view json, const ReadLimits& limits, json::Dialect dialect);

/// As parse_json(), for the texts of the formats, which are objects. @throws FormatError (bad_json)
/// for any other value.
Value parse_json_object(std::string_view json, const ReadLimits& limits,
                        json::Dialect dialect = json::Dialect::rfc8259);

}  // namespace thalia::state
