// verify() of a file that is open, whatever its path leads to by now.
#pragma once

#include <memory>

#include "io/file/file_bytes.h"
#include "thalia/verify.h"

namespace thalia::container {

/// @param bytes opened with the access of the options. @throws as verify().
VerifyReport verify_bytes(const std::shared_ptr<const io::FileBytes>& bytes,
                          const VerifyOptions& options);

}  // namespace thalia::container
