// Where a finding of verify lies, in words.
#pragma once

#include <string>

#include "thalia/verify.h"

namespace thalia::cli {

/// "payload at offset 64 (16 bytes), region 'r', tensor 'w'".
std::string finding_place(const Finding& finding);

}  // namespace thalia::cli
