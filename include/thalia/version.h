// Versions of the library, and of the format that a file is of. docs/format/format.md, "Versions".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thalia {

/// "MAJOR.MINOR.PATCH" of the library in use. Static storage.
std::string_view library_version() noexcept;

/// A version of the format. By default the newest, which this library writes.
struct FormatVersion {
  std::uint16_t major = 1;
  std::uint16_t minor = 0;
  std::uint16_t patch = 0;

  std::string to_string() const;  ///< "1.0.0"
  friend auto operator<=>(const FormatVersion&, const FormatVersion&) = default;
};

/// "1.0", "0.1.0"; nullopt of other texts.
std::optional<FormatVersion> parse_format_version(std::string_view text) noexcept;

}  // namespace thalia
