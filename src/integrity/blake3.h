// BLAKE3, its default hash: what identifies the parameters of GPTRSCHK files.
#pragma once

#include "thalia/types.h"

namespace thalia::integrity {

/// The 256-bit digest of the unkeyed mode. Portable, and made for short inputs: names. Any length
/// is right, tree included; memory is constant.
Digest256 blake3(ByteSpan bytes) noexcept;

}  // namespace thalia::integrity
