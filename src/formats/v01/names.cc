// Entries of a 0.1 index have 31 bytes for a name, including the prefix that marks a pathway.
// V01Names gives each name once and remembers what it gave, so that connections name the same ends.
// A long name keeps its beginning and gets 32 bits of its hash: the same name is always cut alike,
// and two long names are hardly ever cut to one. If they are, it is refused.
#include "formats/v01/names.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "integrity/sha256.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

constexpr std::size_t kMostBytes = 31;
constexpr std::size_t kHexDigits = 8;

std::string fitted(const std::string& name) {
  if (name.size() <= kMostBytes) return name;
  const Digest256 digest = integrity::sha256(as_byte_span(name));
  return fmt::format("{}~{}", utf8_prefix(name, kMostBytes - kHexDigits - 1),
                     hex(std::span(digest.bytes).first(kHexDigits / 2)));
}

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw UnsupportedError(ErrorCode::unsupported_feature, std::move(message),
                         {.section = "region_index",
                          .field = "name",
                          .region = printable(name),
                          .value = printable(name)});
}

}  // namespace

std::string V01Names::region(std::string_view name) {
  const std::string text(name);
  // These names would be read back as something else.
  if (name == kStateRegion || name == kConnectivityRegion)
    refuse(text, "a 0.1 file has this name for something else");
  if (name.starts_with(kPathwayPrefix)) refuse(text, "a 0.1 file would take it for a pathway");
  return give(text);
}

std::string V01Names::pathway(std::string_view name) {
  return give(std::string(kPathwayPrefix) + std::string(name));
}

std::string V01Names::give(const std::string& name) {
  std::string given = fitted(name);
  if (!taken_.insert(given).second) refuse(name, "a 0.1 file has one region of each name");
  given_.emplace(name, given);
  return given;
}

std::string V01Names::known(std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::string(name) : found->second;
}

std::vector<std::string> V01Names::sentences() const {
  std::vector<std::string> sentences;
  for (const auto& [name, given] : given_) {
    if (name != given) {
      sentences.push_back(fmt::format("the name '{}' is longer than {} bytes and becomes '{}'",
                                      printable(name), kMostBytes, printable(given)));
    }
  }
  return sentences;
}

}  // namespace thalia::formats
