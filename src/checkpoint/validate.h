// BrainCheckpoint::validate() of a file that stays open.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/verify.h"

namespace thalia::checkpoint {

struct ValidatedBrain {
  BrainValidation validation{};
  std::optional<Reader> reader{};  ///< of a valid file of version 1.0
};

/// As BrainCheckpoint::validate().
ValidatedBrain validate_brain(const std::filesystem::path& source, const VerifyOptions& options,
                              const std::vector<std::filesystem::path>& search,
                              const BasePolicy& bases);

}  // namespace thalia::checkpoint
