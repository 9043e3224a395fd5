#include "thalia/format_version.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "interop/v01/file_start.h"
#include "thalia/format/constants.h"
#include "thalia/format/header.h"

namespace thalia {

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

std::optional<FormatVersion> read_format_version(const std::filesystem::path& path) {
  const std::vector<std::byte> start = interop::read_file_start(path);
  struct {
    std::uint8_t magic[4];
    format::le16 major, minor, patch;
  } begin;
  if (start.size() < sizeof begin) return std::nullopt;
  std::memcpy(&begin, start.data(), sizeof begin);
  if (std::memcmp(begin.magic, format::kMagic, sizeof begin.magic) != 0) return std::nullopt;
  return FormatVersion{begin.major, begin.minor, begin.patch};
}

}  // namespace thalia
