// Errors that are expected: caught and handed back, and predicates for BOOST_CHECK_EXCEPTION.
#pragma once

#include <string_view>

#include "boost_test.h"
#include "thalia/error.h"

namespace thalia::test {

/// The error that `call` throws: an E with this code, or the test case ends here.
template <typename E, typename Call>
E expect(const Call& call, ErrorCode code) {
  try {
    call();
  } catch (const E& error) {
    if (error.code() != code) BOOST_FAIL("another code: " << error.what());
    return error;
  }
  BOOST_FAIL("nothing was thrown, expected " << error_code_name(code));
  throw;  // not reached
}

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
