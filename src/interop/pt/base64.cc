// RFC 4648, section 4.
#include <cstdint>

#include "interop/pt/tree.h"

namespace thalia::interop::pt {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = (bits << 8) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text.push_back(k <= count ? kDigits[(bits >> (18 - 6 * k)) & 63] : '=');
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t bits = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char digit = text[i + k];
      if (digit == '=' && i + 4 == text.size() && k >= 2) {
        ++padding;
        bits <<= 6;
        continue;
      }
      const std::size_t value = kDigits.find(digit);
      if (value == std::string_view::npos || padding > 0) return std::nullopt;
      bits = (bits << 6) | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k < 3 - padding; ++k)
      bytes.push_back(static_cast<char>((bits >> (16 - 8 * k)) & 0xff));
  }
  return bytes;
}

}  // namespace thalia::interop::pt
