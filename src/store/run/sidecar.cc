#include "store/run/sidecar.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "integrity/sha256.h"
#include "store/run/names.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::uint64_t kLongestLine = 8192;
constexpr std::size_t kPiece = 1 << 20;

}  // namespace

std::string sidecar_name(std::string_view file) {
  return std::string(file) + std::string(kDigestEnding);
}

std::optional<std::string> read_sidecar(const RunFiles& files, const std::filesystem::path& file) {
  const std::optional<io::Folder> folder = files.find_folder(folder_of(file));
  return folder ? read_sidecar(*folder, file.filename().string()) : std::nullopt;
}

std::optional<std::string> read_sidecar(const io::Folder& folder, const std::string& file) {
  const std::optional<std::string> text = read_text(folder, sidecar_name(file), kLongestLine);
  if (!text) return std::nullopt;
  const std::string rest = "  " + file + "\n";
  // sha256sum writes " *" before the name if it reads bytes on systems with text files.
  const std::string binary = " *" + rest.substr(2);
  const bool is_line =
      text->size() == kDigits + rest.size() && (text->ends_with(rest) || text->ends_with(binary)) &&
      std::all_of(text->begin(), text->begin() + kDigits,
                  [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!is_line) {
    throw FormatError(ErrorCode::bad_value, "no digest of the file beside it",
                      {.path = (folder.path() / sidecar_name(file)).string(),
                       .value = fmt::format("'{}'", printable(*text, 100)),
                       .bound = fmt::format("64 hexadecimal digits, two spaces, {}", file)});
  }
  return text->substr(0, kDigits);
}

// Past the mapping: what the disk refuses is an error here, and would be a signal there. The pages
// are the same.
Digest256 digest_of(const io::FileBytes& file, const std::stop_token& cancel) {
  integrity::Sha256 hasher;
  const std::uint64_t size = file.bytes().size();
  std::vector<std::byte> piece(std::min<std::uint64_t>(size, kPiece));
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    stop_if_cancelled(cancel);
    const MutableByteSpan part(piece.data(), std::min<std::uint64_t>(piece.size(), size - at));
    file.read_ahead(at, part.size());
    file.read(at, part);
    hasher.update(part);
  }
  return hasher.finish();
}

}  // namespace thalia::store
