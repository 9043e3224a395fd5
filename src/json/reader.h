// Reading JSON with bounds: RFC 8259, UTF-8 checked, depth limited.
#pragma once

#include <string_view>

namespace thalia::json {

/// @throws FormatError (bad_json) unless `text` is one well-formed JSON object no deeper than
/// `max_depth`; code limit_exceeded where only the depth is at fault. The message says what is
/// wrong, as far as the parser tells.
void check_object(std::string_view text, unsigned max_depth);

}  // namespace thalia::json
