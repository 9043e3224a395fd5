// verify() of a file that is open, whatever its path leads to by now.
#pragma once

#include <memory>

#include "io/file/input_file.h"
#include "thalia/verify.h"

namespace thalia::container {

/// @param bytes opened with the access of the options. @throws as verify().
VerifyReport verify_bytes(const std::shared_ptr<const io::FileBytes>& bytes,
                          const VerifyOptions& options);

/// verify() of a file that others look at too.
VerifyReport verify_input(const io::InputFile& input, const VerifyOptions& options);

}  // namespace thalia::container
