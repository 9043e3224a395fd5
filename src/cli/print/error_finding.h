// Findings of verify: made of an error of a file, and in words.
#pragma once

#include <string>
#include <string_view>

#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::cli {

Finding finding_of(const Error& error);

/// "error", "warning".
std::string_view severity_name(Severity severity);
/// "payload at offset 64 (16 bytes), region 'r', tensor 'w'".
std::string finding_place(const Finding& finding);

}  // namespace thalia::cli
