// "1.0" or "1.0.0": two or three numbers, no signs, no spaces. A missing patch is 0.
#include "thalia/version.h"

#include <fmt/format.h>

#include <charconv>

#include "format/constants.h"
#include "format/version_config.h"

namespace thalia {

std::string_view library_version() noexcept {
  return THALIA_VERSION;
}

static_assert(FormatVersion{} ==
              FormatVersion{format::kMajorVersion, format::kMinorVersion, format::kPatchVersion});

std::string FormatVersion::to_string() const {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::optional<FormatVersion> parse_format_version(std::string_view text) noexcept {
  FormatVersion version;
  unsigned parts = 0;
  for (std::uint16_t* const part : {&version.major, &version.minor, &version.patch}) {
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, *part);
    if (error != std::errc()) return std::nullopt;
    ++parts;
    text.remove_prefix(static_cast<std::size_t>(stopped - text.data()));
    if (text.empty()) break;
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  if (!text.empty() || parts < 2) return std::nullopt;
  return version;
}

}  // namespace thalia
