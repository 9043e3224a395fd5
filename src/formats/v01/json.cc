// Writes JSON exactly as Python's json.dumps(value, indent=2) does, so that a file that was read
// and written again is the same byte for byte: two spaces, ASCII only, escapes in lower-case
// hexadecimal, characters beyond U+FFFF as two surrogates. Numbers are copied as they were written.
//
// Python strings may hold lone surrogates, which UTF-8 does not have. They are kept in the three
// bytes that UTF-8 would give them, and written as one escape.
#include "formats/v01/json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::formats {
namespace {

struct CodePoint {
  std::uint32_t code;
  std::size_t bytes;
};

// The character at the front of a text that may hold lone surrogates, as UTF-8 would write them.
std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t bytes = lead < 0x80   ? 1
                            : lead < 0xC2 ? 0
                            : lead < 0xE0 ? 2
                            : lead < 0xF0 ? 3
                                          : 4;
  if (bytes == 0 || bytes > text.size() || lead > 0xF4) return std::nullopt;
  if (bytes == 1) return CodePoint{lead, 1};
  std::uint32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte(i) & 0x3F);
  }
  // The least code of each length: UTF-8 forbids longer forms than a code needs.
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF) return std::nullopt;
  return CodePoint{code, bytes};
}

std::string_view short_escape(std::uint32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {};
  }
}

class Writer {
 public:
  Writer(std::string& out, const TensorTag& tag) : out_(out), tag_(tag) {}

  void write(const Value& value, const std::string& path) {
    switch (value.kind()) {
      case Value::Kind::null:
        out_ += "null";
        break;
      case Value::Kind::boolean:
        out_ += value.as_bool() ? "true" : "false";
        break;
      case Value::Kind::number:
        out_ += value.number_text();
        break;
      case Value::Kind::string:
        string(value.as_string(), path);
        break;
      case Value::Kind::array:
        array(value, path);
        break;
      case Value::Kind::object:
        object(value, path);
        break;
      case Value::Kind::tensor:
        tensor(value.as_tensor(), path);
        break;
    }
  }

 private:
  void array(const Value& value, const std::string& path) {
    if (value.size() == 0) {
      out_ += "[]";
      return;
    }
    open('[');
    for (std::size_t i = 0; i < value.size(); ++i) {
      next(i);
      write(value.elements()[i], v01_element_path(path, i));
    }
    close(']');
  }

  void object(const Value& value, const std::string& path) {
    if (tag_) require_no_tag(value, path);
    plain_object(value, path);
  }

  // Also writes the tags themselves, which require_no_tag() would refuse.
  void plain_object(const Value& value, const std::string& path) {
    if (value.size() == 0) {
      out_ += "{}";
      return;
    }
    open('{');
    std::size_t i = 0;
    for (const auto& [name, member] : value.members()) {
      next(i++);
      string(name, path);
      out_ += ": ";
      write(member, v01_member_path(path, name));
    }
    close('}');
  }

  void tensor(const Tensor& tensor, const std::string& path) {
    if (!tag_) {
      fail_argument(ErrorCode::bad_argument, path, "a tensor", "values that JSON has");
    }
    plain_object(tag_(tensor, path), path);
  }

  // An object that looks like a tensor's place cannot be escaped, and would be read as a tensor.
  static void require_no_tag(const Value& value, const std::string& path) {
    const Value* type = value.find("_type");
    if (type == nullptr || type->kind() != Value::Kind::string || type->as_string() != "tensor")
      return;
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a 0.1 file would take this object for a tensor",
                           {.field = path, .value = "\"_type\": \"tensor\""});
  }

  void string(std::string_view text, const std::string& path) {
    out_ += '"';
    for (std::string_view rest = text; !rest.empty();) {
      const auto point = first_code_point(rest);
      if (!point) {
        throw UnsupportedError(ErrorCode::unsupported_feature, "a string that is no UTF-8",
                               {.field = path, .value = printable(text, 40), .bound = "UTF-8"});
      }
      escaped(point->code);
      rest.remove_prefix(point->bytes);
    }
    out_ += '"';
  }

  void escaped(std::uint32_t code) {
    if (const std::string_view escape = short_escape(code); !escape.empty()) {
      out_ += escape;
    } else if (code >= 0x20 && code < 0x7F) {
      out_ += static_cast<char>(code);
    } else if (code < 0x10000) {
      unit(code);
    } else {
      unit(0xD800 + ((code - 0x10000) >> 10));
      unit(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }

  // One escape for each unit of UTF-16, as in Python.
  void unit(std::uint32_t utf16) { fmt::format_to(std::back_inserter(out_), "\\u{:04x}", utf16); }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void next(std::size_t i) {
    out_ += i == 0 ? "\n" : ",\n";
    out_.append(2 * depth_, ' ');
  }
  void close(char bracket) {
    --depth_;
    out_ += '\n';
    out_.append(2 * depth_, ' ');
    out_ += bracket;
  }

  std::string& out_;
  const TensorTag& tag_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string v01_member_path(const std::string& path, std::string_view name) {
  const std::string shown = printable(name, 80);
  return path.empty() ? shown : fmt::format("{}.{}", path, shown);
}

std::string v01_element_path(const std::string& path, std::size_t i) {
  return fmt::format("{}[{}]", path, i);
}

std::optional<std::uint64_t> v01_unsigned(const Value& value) noexcept {
  if (value.kind() != Value::Kind::number) return std::nullopt;
  const std::string& text = value.number_text();
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::string python_json(const Value& value, const TensorTag& tag) {
  std::string text;
  Writer(text, tag).write(value, "");
  return text;
}

}  // namespace thalia::formats
