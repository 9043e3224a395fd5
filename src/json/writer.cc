// Every value goes through begin_value(), every key through key(): they alone place commas and
// colons. Numbers are written with std::to_chars(), which knows no locale and no stream state.
#include "json/writer.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

namespace thalia {
namespace {

// For each byte the character that follows the backslash, 'u' for \u00xx, 0 if no escape is
// needed.
constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> table{};
  for (unsigned c = 0; c < 0x20; ++c) table[c] = 'u';
  table['\b'] = 'b';
  table['\f'] = 'f';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  table['"'] = '"';
  table['\\'] = '\\';
  return table;
}();

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const char escape = kEscapes[c];
    if (escape == 0) continue;
    out += text.substr(start, i - start);
    start = i + 1;
    out += '\\';
    out += escape;
    if (escape == 'u') {
      out += "00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  out += text.substr(start);
  out += '"';
}

template <typename T>
// 32 characters hold any integer of 64 bits and the shortest form of any double.
std::string_view digits(T number, std::array<char, 32>& buffer) {
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), static_cast<std::size_t>(result.ptr - buffer.data())};
}

}  // namespace

void JsonWriter::begin_line() {
  if (!indent_) return;
  out_.append(1, '\n').append(indent_->margin).append(indent_->spaces * open_.size(), ' ');
}

// A member or an element; not the value after a key, nor the text as a whole.
void JsonWriter::begin_piece() {
  if (need_comma_) out_ += ',';
  if (!open_.empty()) begin_line();
}

void JsonWriter::begin_value() {
  assert(after_key_ || open_.empty() || open_.back() == '[');
  if (!after_key_) begin_piece();
  need_comma_ = true;
  after_key_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  begin_value();
  out_ += bracket;
  open_.push_back(bracket);
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  assert(!open_.empty() && open_.back() == bracket && !after_key_);
  open_.pop_back();
  if (need_comma_) begin_line();  // not between the brackets of nothing
  out_ += bracket == '{' ? '}' : ']';
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_object() {
  return open('{');
}
JsonWriter& JsonWriter::end_object() {
  return close('{');
}
JsonWriter& JsonWriter::begin_array() {
  return open('[');
}
JsonWriter& JsonWriter::end_array() {
  return close('[');
}

JsonWriter& JsonWriter::key(std::string_view key) {
  assert(!open_.empty() && open_.back() == '{' && !after_key_);
  begin_piece();
  append_string(out_, key);
  out_ += indent_ ? ": " : ":";
  need_comma_ = false;
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  begin_value();
  append_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::unsigned_value(std::uint64_t number) {
  std::array<char, 32> buffer;
  return raw(digits(number, buffer));
}
JsonWriter& JsonWriter::signed_value(std::int64_t number) {
  std::array<char, 32> buffer;
  return raw(digits(number, buffer));
}
JsonWriter& JsonWriter::value(double number) {
  std::array<char, 32> buffer;
  return std::isfinite(number) ? raw(digits(number, buffer)) : null();
}
JsonWriter& JsonWriter::value(float number) {
  std::array<char, 32> buffer;
  return std::isfinite(number) ? raw(digits(number, buffer)) : null();
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  begin_value();
  out_ += json;
  return *this;
}

}  // namespace thalia
