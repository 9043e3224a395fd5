// Values of GGUF as JSON and back, exactly: {"u32":4096}, {"string[]":["a","b"]}.
// docs/format/gguf.md, "Through a .thalia file".
#pragma once

#include <optional>

#include "json/reader.h"
#include "json/writer.h"
#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

void value_to_json(JsonWriter& json, const GgufValue& value);

/// nullopt where the JSON value, which somebody else may have written, is not one of these.
/// @throws FormatError for text that is no JSON.
std::optional<GgufValue> value_from_json(json::Value& json);

}  // namespace thalia::formats::gguf
