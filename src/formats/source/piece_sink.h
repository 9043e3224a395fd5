// Payloads that come a piece at a time.
#pragma once

#include <functional>

#include "thalia/types.h"

namespace thalia::formats {

/// Takes the next piece of a payload; the bytes are valid during the call.
using PieceSink = std::function<void(ByteSpan piece)>;

}  // namespace thalia::formats
