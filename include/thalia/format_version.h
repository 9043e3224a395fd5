// The version of the format that a file is of. docs/format.md, "Versions".
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace thalia {

struct FormatVersion {
  std::uint16_t major = 1;
  std::uint16_t minor = 0;
  std::uint16_t patch = 0;

  std::string to_string() const;  ///< "1.0.0"
  friend auto operator<=>(const FormatVersion&, const FormatVersion&) = default;
};

/// "1.0", "0.1.0"; nullopt of other texts.
std::optional<FormatVersion> parse_format_version(std::string_view text) noexcept;
/// What the header of a .thalia file says, also inside a frame; nullopt of other files, deltas
/// among them. Reads the first bytes. @throws IoError; FormatError where a frame is broken.
std::optional<FormatVersion> read_format_version(const std::filesystem::path& path);

}  // namespace thalia
