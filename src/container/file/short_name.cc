#include "container/file/short_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "format/constants.h"
#include "integrity/sha256.h"
#include "thalia/text.h"

namespace thalia::container {

ShortName short_name(std::string_view full_name) {
  std::string text(full_name);
  if (text.size() > format::kShortNameCapacity) {
    const Digest256 digest = integrity::sha256(as_byte_span(full_name));
    // 22 bytes of the name, a tilde and 8 digits are 31: the last byte of the field stays NUL.
    text = fmt::format("{}~{}", utf8_prefix(full_name, 22), hex(std::span(digest.bytes).first(4)));
  }
  ShortName out{};
  std::copy(text.begin(), text.end(), out.begin());
  return out;
}

std::string short_name_string(std::string_view full_name) {
  const ShortName bytes = short_name(full_name);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

}  // namespace thalia::container
