// A ParamSource of any file that a room reads.
#pragma once

#include <memory>

#include "formats/source/opened_file.h"
#include "thalia/formats/param_source.h"

namespace thalia::formats {

/// Reads nothing yet. @throws UsageError (bad_argument) for a share outside of 0 to 1.
ParamSource make_param_source(std::shared_ptr<const OpenedFile> source,
                              const ParamSourceOptions& options = {});

}  // namespace thalia::formats
