// The escapes of JSON strings, for texts that spell lone surrogates: Python's json module reads and
// writes those.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace thalia::json {

/// Decodes what is between the quotes of a string. Lone surrogates become the three bytes that
/// UTF-8 would give them. nullopt for an escape that does not exist.
std::optional<std::string> unescape_wtf8(std::string_view escaped);

}  // namespace thalia::json
