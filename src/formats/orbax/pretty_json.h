// JSON as serde_json prints it for people.
#pragma once

#include <string>
#include <string_view>

namespace thalia::formats::orbax {

/// The object with the keys of all its objects sorted, of equal ones the last; each member and
/// element on a line of its own, indented by 2. @throws FormatError if it is no JSON object, or
/// deeper than that.
std::string pretty_json(std::string_view object, unsigned max_depth);

}  // namespace thalia::formats::orbax
