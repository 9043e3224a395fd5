#include "formats/orbax/pretty_json.h"

#include "json/copy.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::formats::orbax {

std::string pretty_json(std::string_view object, unsigned max_depth) {
  std::string text;
  JsonWriter out(text, JsonIndent{});
  json::walk_value(json::canonical_object(object, max_depth), max_depth,
                   [&](json::Value& value) { json::copy_value(value, out); });
  return text;
}

}  // namespace thalia::formats::orbax
