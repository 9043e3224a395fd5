#include <cstring>

#include "format/header.h"
#include "formats/v01/file_start.h"
#include "thalia/formats/v01.h"

namespace thalia {

std::optional<FormatVersion> read_format_version(const std::filesystem::path& path) {
  return formats::version_in(formats::read_file_start(path));
}

std::optional<FormatVersion> formats::version_in(ByteSpan start) {
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
