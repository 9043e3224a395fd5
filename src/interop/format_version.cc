// Versions and what leads from one to another: thalia/migrate.h.
#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "interop/file_start.h"
#include "thalia/format/constants.h"
#include "thalia/format/header.h"
#include "thalia/migrate.h"

namespace thalia {
namespace {

constexpr std::uint16_t kOriginalMajor = 0;

bool is_written(const FormatVersion& version) {
  return version == FormatVersion{0, 1, 0} || version == FormatVersion{1, 0, 0};
}

bool is_read(const FormatVersion& version) {
  return version.major == kOriginalMajor || version.major == format::kMajorVersion;
}

}  // namespace

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

Migration can_migrate(const FormatVersion& from, const FormatVersion& to) {
  if (!is_read(from)) {
    return {.reason = fmt::format("major version {} is not known", from.major)};
  }
  if (!is_written(to)) {
    return {.reason = fmt::format("{} is no version to write: 0.1 and 1.0 are", to.to_string())};
  }
  if (from.major == to.major) {
    return {.possible = true, .automatic = true, .reason = "nothing is lost: the format stays"};
  }
  if (from.major < to.major) {
    return {.possible = true,
            .automatic = true,
            .reason = "nothing is lost: 1.0 has a place for all that 0.1 files hold"};
  }
  return {.possible = true,
          .lossy = true,
          .reason =
              "down across a major version: 0.1 has no place for n_inputs, neuron types and "
              "metadata of regions, and for element types but six"};
}

}  // namespace thalia
