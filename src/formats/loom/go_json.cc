// Strings: <, > and & are escaped, as are U+2028 and U+2029. Numbers: decimal, with an exponent
// below 1e-6 and from 1e21.
#include "formats/loom/go_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::formats::loom {
namespace {

void put_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const Character character = first_character(text.substr(i));
      if (character.length == 0) {
        out += "\\ufffd";
        ++i;
        continue;
      }
      if (character.code == 0x2028 || character.code == 0x2029) {
        out += character.code == 0x2028 ? "\\u2028" : "\\u2029";
      } else {
        out += text.substr(i, character.length);
      }
      i += character.length;
      continue;
    }
    ++i;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20 || c == '<' || c == '>' || c == '&') {
          out += fmt::format("\\u{:04x}", c);
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  out += '"';
}

// The shortest digits come from to_chars, and are placed here: its own decimal form prints every
// digit of a large number.
template <typename Number>
void put_number(std::string& out, Number number) {
  if (!std::isfinite(number)) {
    fail_argument(ErrorCode::bad_argument, "number", fmt::format("{}", number), "a finite number",
                  "JSON has no such number");
  }
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific)
                       .ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const Number magnitude = std::abs(number);
  if (magnitude != 0 && (magnitude < Number(1e-6) || magnitude >= Number(1e21))) {
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out += fmt::format("e{}{}", exponent < 0 ? '-' : '+', std::abs(exponent));
    return;
  }
  const int count = static_cast<int>(digits.size());
  if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else if (count <= exponent + 1) {
    out.append(digits).append(static_cast<std::size_t>(exponent + 1 - count), '0');
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    out.append(digits, 0, whole).append(".").append(digits, whole);
  }
}

}  // namespace

GoJson& GoJson::key(std::string_view key) {
  begin_value();
  put_escaped(out_, key);
  out_ += indented_ ? ": " : ":";
  after_key_ = true;
  return *this;
}

GoJson& GoJson::text(std::string_view text) {
  begin_value();
  put_escaped(out_, text);
  return *this;
}

GoJson& GoJson::number(std::int64_t number) {
  begin_value();
  out_ += std::to_string(number);
  return *this;
}

GoJson& GoJson::number(std::uint64_t number) {
  begin_value();
  out_ += std::to_string(number);
  return *this;
}

GoJson& GoJson::number(double number) {
  begin_value();
  put_number(out_, number);
  return *this;
}

GoJson& GoJson::number(float number) {
  begin_value();
  put_number(out_, number);
  return *this;
}

GoJson& GoJson::boolean(bool value) {
  begin_value();
  out_ += value ? "true" : "false";
  return *this;
}

GoJson& GoJson::null() {
  begin_value();
  out_ += "null";
  return *this;
}

void GoJson::begin_text() {
  begin_value();
  out_ += '"';
}

GoJson& GoJson::open(char bracket) {
  begin_value();
  out_ += bracket;
  filled_.push_back(false);
  return *this;
}

GoJson& GoJson::close(char bracket) {
  const bool filled = filled_.back();
  filled_.pop_back();
  if (filled) new_line();
  out_ += bracket;
  return *this;
}

void GoJson::begin_value() {
  if (after_key_ || filled_.empty()) {
    after_key_ = false;
    return;
  }
  if (filled_.back()) out_ += ',';
  filled_.back() = true;
  new_line();
}

void GoJson::new_line() {
  if (indented_) out_.append("\n").append(2 * filled_.size(), ' ');
}

}  // namespace thalia::formats::loom
