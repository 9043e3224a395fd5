// An error as programs read it.
#pragma once

#include <exception>
#include <string>

#include "json/writer.h"

namespace thalia::cli {

/// The error's message as the line of complaint shows it.
std::string error_text(const std::exception& error);

/// The value of a member "error": {"code":"bad_magic","message":...}, with what is known of the
/// place. For an exception that is not the library's, the code is "other".
void add_error(JsonWriter& json, const std::exception& error);

}  // namespace thalia::cli
