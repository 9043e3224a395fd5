// Rules and limits of retention on the command line.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/terminal/option.h"
#include "thalia/store/retention.h"

namespace thalia::cli {

struct RetentionArguments {
  std::optional<std::uint32_t> keep;
  std::optional<std::uint64_t> every_steps;
  std::optional<std::uint64_t> every_seconds;
  std::optional<std::uint32_t> best;
  std::optional<std::uint64_t> max_age_seconds;
  std::optional<std::uint64_t> max_bytes;
  bool squash = false;

  void declare(CLI::App& app);
  bool is_given() const noexcept;
  /// The policy with what was given: one rule takes the place of all, a limit that of the same one.
  RetentionPolicy apply(RetentionPolicy policy) const;
};

}  // namespace thalia::cli
