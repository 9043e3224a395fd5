// SHA-1 (FIPS 180-4): for files that name it. It protects against chance alone.
#pragma once

#include <string>

#include "thalia/types.h"

namespace thalia::integrity {

/// 40 lower-case hexadecimal digits. @throws UnsupportedError (unsupported_feature) if the
/// cryptographic library refuses SHA-1.
std::string sha1_hex(ByteSpan bytes);

}  // namespace thalia::integrity
