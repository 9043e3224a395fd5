// The text is known to be one well-formed object, so that brackets and strings are enough to find
// the way in it.
#include "formats/safetensors/metadata_slot.h"

#include <string>

#include "formats/safetensors/parse.h"
#include "json/reader.h"
#include "thalia/error.h"

namespace thalia::formats::safetensors {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";
constexpr std::string_view kNull = "null";

// After the string that begins at `at`.
std::size_t skip_string(std::string_view text, std::size_t at) noexcept {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

std::size_t skip_space(std::string_view text, std::size_t at) noexcept {
  const std::size_t found = text.find_first_not_of(kWhiteSpace, at);
  return found == std::string_view::npos ? text.size() : found;
}

// After the object or array that begins at `at`.
std::size_t skip_nested(std::string_view text, std::size_t at) noexcept {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) break;
  }
  return at;
}

// `quoted` is a string with its quotation marks.
bool is_metadata_key(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos)
    return quoted.substr(1, quoted.size() - 2) == kSafetensorsMetadataKey;
  bool same = false;
  try {
    json::walk_object(
        "{" + std::string(quoted) + ":0}", 1,
        [&](std::string_view key, json::Value&) { same = key == kSafetensorsMetadataKey; });
  } catch (const FormatError&) {  // no header that was parsed
  }
  return same;
}

}  // namespace

std::optional<MetadataSlot> find_metadata_slot(std::string_view header) {
  // Members of the outer object: a string, a colon, an object, or null in place of the texts.
  for (std::size_t at = skip_space(header, 1); at < header.size() && header[at] == '"';) {
    const std::size_t key_end = skip_string(header, at);
    if (key_end >= header.size()) return std::nullopt;
    const bool is_metadata = is_metadata_key(header.substr(at, key_end - at));
    const std::size_t value = skip_space(header, skip_space(header, key_end) + 1);
    if (value >= header.size()) return std::nullopt;
    const bool is_null = header.substr(value).starts_with(kNull);
    const std::size_t end =
        skip_space(header, is_null ? value + kNull.size() : skip_nested(header, value));
    if (is_metadata) return MetadataSlot{.begin = value, .end = end};
    at = skip_space(header, end + 1);
  }
  return std::nullopt;
}

}  // namespace thalia::formats::safetensors
