// Findings of verify: made of an error of a file.
#pragma once

#include <string_view>

#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::inspect {

Finding finding_of(const Error& error);

/// "error", "warning".
std::string_view severity_name(Severity severity);

}  // namespace thalia::inspect
