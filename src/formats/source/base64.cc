#include "formats/source/base64.h"

namespace thalia::formats {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_digit_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kBase64Digits.size(); ++i)
    values[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr std::array<std::int8_t, 256> kDigitValues = make_digit_values();

void put_base64_group(std::byte a, std::byte b, std::byte c, std::string& out) {
  const unsigned group = std::to_integer<unsigned>(a) << 16 | std::to_integer<unsigned>(b) << 8 |
                         std::to_integer<unsigned>(c);
  for (const unsigned shift : {18u, 12u, 6u, 0u}) out += kBase64Digits[(group >> shift) & 63];
}

}  // namespace

void Base64Encoder::put(ByteSpan piece, std::string& out) {
  std::size_t i = 0;
  while (count_ != 0 && i < piece.size()) {
    held_[count_++] = piece[i++];
    if (count_ < 3) continue;
    put_base64_group(held_[0], held_[1], held_[2], out);
    count_ = 0;
  }
  for (; i + 3 <= piece.size(); i += 3) put_base64_group(piece[i], piece[i + 1], piece[i + 2], out);
  while (i < piece.size()) held_[count_++] = piece[i++];
}

void Base64Encoder::finish(std::string& out) {
  if (count_ == 0) return;
  put_base64_group(held_[0], count_ == 2 ? held_[1] : std::byte{0}, std::byte{0}, out);
  for (std::size_t i = 0; i < 3 - count_; ++i) out[out.size() - 1 - i] = '=';
  count_ = 0;
}

std::string to_base64(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  Base64Encoder encoder;
  encoder.put(bytes, text);
  encoder.finish(text);
  return text;
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text, std::size_t& wrong) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  unsigned group = 0, digits = 0, padding = 0;
  std::size_t group_begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' || text[i] == '\n') continue;
    wrong = i;
    if (digits + padding == 0) group_begin = i;
    if (text[i] == '=') {
      if (digits < 2 || digits + padding == 4) return std::nullopt;
      ++padding;
    } else {
      const std::int8_t value = kDigitValues[static_cast<unsigned char>(text[i])];
      if (value < 0 || padding != 0) return std::nullopt;
      group = group << 6 | static_cast<unsigned>(value);
      ++digits;
    }
    if (digits + padding < 4 || padding != 0) continue;
    for (const unsigned shift : {16u, 8u, 0u})
      bytes.push_back(static_cast<std::byte>(group >> shift & 0xff));
    group = digits = 0;
  }
  if (digits == 0) return bytes;
  wrong = group_begin;
  if (digits + padding != 4) return std::nullopt;
  group <<= 6 * padding;
  bytes.push_back(static_cast<std::byte>(group >> 16 & 0xff));
  if (padding == 1) bytes.push_back(static_cast<std::byte>(group >> 8 & 0xff));
  return bytes;
}

}  // namespace thalia::formats
