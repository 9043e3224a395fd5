// Spans of time as people write them: 30min, 12h, 7d.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal/option.h"

namespace thalia::cli {

/// "90s", "30min", "12h", "7d", "2w", or seconds without a unit; nullopt for another text, and for
/// what is not a second at least.
std::optional<std::uint64_t> parse_duration(std::string_view text) noexcept;
/// In one unit, rounded down: "42 s", "12 min", "30 h", "7 d".
std::string duration_text(std::uint64_t seconds);

/// An option whose value is a duration, in seconds. Another word is a UsageError.
CLI::Option* add_duration(CLI::App& app, const char* usage, std::optional<std::uint64_t>& seconds,
                          std::string help);

}  // namespace thalia::cli
