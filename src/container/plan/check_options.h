// Save options against their limits.
#pragma once

#include <utility>

#include "thalia/options.h"

namespace thalia::container {

/// @throws UsageError (bad_argument).
void check_options(const SaveOptions& options);

/// Save options that were checked. A save takes these: anybody who has long work to do first makes
/// them before it, and they are not checked again.
class CheckedOptions {
 public:
  /// Implicit. @throws as check_options().
  CheckedOptions(SaveOptions options) : options_(std::move(options)) { check_options(options_); }
  const SaveOptions& get() const& noexcept { return options_; }
  SaveOptions get() && { return std::move(options_); }

 private:
  SaveOptions options_;
};

}  // namespace thalia::container
