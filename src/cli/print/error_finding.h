// An error of a file as a finding of verify.
#pragma once

#include "thalia/error.h"
#include "thalia/verify.h"

namespace thalia::cli {

Finding finding_of(const Error& error);

}  // namespace thalia::cli
