// Errors as people and as programs read them.
#pragma once

#include <exception>
#include <string>

#include "json/writer.h"

namespace thalia::cli {

/// The error's message as the line of complaint shows it.
std::string error_text(const std::exception& error);

/// The value of a member "error": {"message":...,"code":"bad_magic"}, with what is known of the
/// place. For an exception that is not the library's, the code is "other".
void add_error(JsonWriter& json, const std::exception& error);

/// describes the error in one line on standard error, as JSON (docs/use/json.md) or as complain()
/// does, and returns `status`.
int complain_of(const std::exception& error, bool as_json, int status);

}  // namespace thalia::cli
