// An error as programs read it.
#pragma once

#include <exception>
#include <string>

#include "json/writer.h"

namespace thalia::cli {

/// What the line of complaint says of it.
std::string error_text(const std::exception& error);

/// The value of a member "error": {"code":"bad_magic","message":...} with what is known of where it
/// lies. Of an exception that is none of the library's, the code is "other".
void add_error(JsonWriter& json, const std::exception& error);

}  // namespace thalia::cli
