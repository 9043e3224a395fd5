// Predicates for BOOST_CHECK_EXCEPTION.
#pragma once

#include <string_view>

#include "thalia/error.h"

namespace thalia::test {

/// True of an error with this code.
inline auto has_code(ErrorCode code) {
  return [code](const Error& error) { return error.code() == code; };
}

/// True of an error with this code whose what() contains all of `parts`.
template <typename... Parts>
auto says(ErrorCode code, Parts... parts) {
  return [=](const Error& error) {
    const std::string_view text = error.what();
    return error.code() == code && ((text.find(parts) != std::string_view::npos) && ...);
  };
}

}  // namespace thalia::test
