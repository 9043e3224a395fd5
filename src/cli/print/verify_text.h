// What verify found, in words.
#pragma once

#include <string>

#include "thalia/verify.h"

namespace thalia::cli {

/// "payload at offset 64 (16 bytes), region 'r', tensor 'w'".
std::string finding_place(const Finding& finding);

/// Says what a report without errors vouches for: "1.2 MiB checked in 0.01 s", or that nothing but
/// the structure was looked at, and why.
/// @param quick payloads were not asked for. @param with_time says how long it took.
std::string what_was_checked(const VerifyReport& report, bool quick, bool with_time);

}  // namespace thalia::cli
