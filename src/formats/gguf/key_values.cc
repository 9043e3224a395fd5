// The counts of arrays are compared with the bytes that are left before memory is asked for, so
// what a file makes us allocate is at most a small multiple of its size. Arrays of arrays, which
// the format's description allows, are refused, as ggml does: so nothing here is recursive.
#include "formats/gguf/key_values.h"

#include <string_view>
#include <utility>
#include <variant>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/gguf/name_index.h"
#include "formats/gguf/value_types.h"

namespace thalia::formats::gguf {
namespace {

constexpr std::string_view kValueField = "value";

bool read_boolean(Cursor& cursor) {
  const std::uint64_t begin = cursor.offset();
  const auto stored = cursor.number<std::uint8_t>(kValueField);
  if (stored > 1) {
    fail_field(ErrorCode::bad_value, "key_values", "bool", begin, std::to_string(stored), "0 or 1");
  }
  return stored != 0;
}

template <typename T>
T read_one(Cursor& cursor) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(cursor.text(kValueField));
  } else if constexpr (std::is_same_v<T, bool>) {
    return read_boolean(cursor);
  } else {
    return cursor.number<T>(kValueField);
  }
}

// Bytes that an element takes in the file at least.
template <typename T>
constexpr std::uint64_t least_bytes() {
  return std::is_same_v<T, std::string> ? 8 : sizeof(T);
}

template <typename T>
std::vector<T> read_elements(Cursor& cursor) {
  const std::uint64_t count = cursor.count("array_length", least_bytes<T>());
  cursor.allocate(count, sizeof(T));
  std::vector<T> elements;
  elements.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    elements.push_back(read_one<T>(cursor));
    if constexpr (std::is_same_v<T, std::string>) cursor.allocate(1, elements.back().size());
  }
  return elements;
}

[[noreturn]] void fail_type(std::string_view field, std::uint64_t offset, std::uint32_t code) {
  fail_field(ErrorCode::bad_value, "key_values", field, offset, std::to_string(code), "0 to 12");
}

GgufValue read_array(Cursor& cursor) {
  const std::uint64_t begin = cursor.offset();
  const auto code = cursor.number<std::uint32_t>("element_type");
  if (code == static_cast<std::uint32_t>(ValueCode::array)) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "an array of arrays, as no ggml reads it",
                           {.section = "key_values", .field = "element_type", .offset = begin});
  }
  GgufArray array;
  const bool known = any_value_type([&](auto type) {
    using T = Identity<decltype(type)>;
    if (code != static_cast<std::uint32_t>(ValueType<T>::code)) return false;
    array = read_elements<T>(cursor);
    return true;
  });
  if (!known) fail_type("element_type", begin, code);
  return array;
}

GgufValue read_value(Cursor& cursor) {
  const std::uint64_t begin = cursor.offset();
  const auto code = cursor.number<std::uint32_t>("value_type");
  if (code == static_cast<std::uint32_t>(ValueCode::array)) return read_array(cursor);
  GgufValue value;
  const bool known = any_value_type([&](auto type) {
    using T = Identity<decltype(type)>;
    if (code != static_cast<std::uint32_t>(ValueType<T>::code)) return false;
    value = read_one<T>(cursor);
    if constexpr (std::is_same_v<T, std::string>)
      cursor.allocate(1, std::get<std::string>(value).size());
    return true;
  });
  if (!known) fail_type("value_type", begin, code);
  return value;
}

template <typename T>
void append_one(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    append_text(out, value);
  } else if constexpr (sizeof(T) == 1) {
    out.push_back(static_cast<char>(value));
  } else {
    using Bits =
        std::conditional_t<sizeof(T) == 8, std::uint64_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
    const format::LittleEndian<Bits> stored(std::bit_cast<Bits>(value));
    out.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
}

}  // namespace

GgufKeyValues read_key_values(Cursor& cursor, std::uint64_t count) {
  const std::uint64_t first = cursor.offset();
  cursor.allocate(count, sizeof(GgufKeyValue) + NameIndex::kEntryBytes);
  GgufKeyValues key_values;
  key_values.reserve(count);
  const auto refuse = [](std::string_view key, std::uint64_t offset, std::string message) {
    throw FormatError(
        ErrorCode::bad_name, std::move(message),
        {.section = "key_values", .field = "key", .offset = offset, .value = printable(key)});
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin = cursor.offset();
    const std::string_view key = cursor.text("key");
    if (key.empty()) refuse(key, begin, "the key is empty");
    if (!is_valid_utf8(key)) refuse(key, begin, "the key is not UTF-8");
    cursor.allocate(1, key.size());
    key_values.push_back({std::string(key), read_value(cursor)});
  }
  const NameIndex keys(key_values, [](const auto& one) { return std::string_view(one.key); });
  if (const auto twice = keys.repeated())
    refuse(key_values[*twice].key, first, "the key is there twice");
  return key_values;
}

std::uint32_t read_alignment(const GgufKeyValues& key_values) {
  for (const auto& [key, value] : key_values) {
    if (key != kAlignmentKey) continue;
    const auto* const alignment = std::get_if<std::uint32_t>(&value);
    const auto refuse = [&](const std::string& found, const char* bound) {
      throw FormatError(ErrorCode::bad_value, {},
                        {.section = "key_values",
                         .field = std::string(kAlignmentKey),
                         .value = found,
                         .bound = bound});
    };
    if (alignment == nullptr) {
      refuse(gguf_type_name(value), "u32");
    } else if (!is_alignment(*alignment)) {
      refuse(std::to_string(*alignment), "a power of two");
    } else if (*alignment > kMostAlignment) {
      throw UnsupportedError(ErrorCode::unsupported_feature, {},
                             {.section = "key_values",
                              .field = std::string(kAlignmentKey),
                              .value = std::to_string(*alignment),
                              .bound = fmt::format("at most {}", kMostAlignment)});
    }
    return *alignment;
  }
  return kDefaultAlignment;
}

void append_number(std::string& out, std::uint32_t number) {
  append_one(out, number);
}

void append_number(std::string& out, std::uint64_t number) {
  append_one(out, number);
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  out += text;
}

void append_key_value(std::string& out, const GgufKeyValue& key_value) {
  append_text(out, key_value.key);
  const auto append_code = [&](ValueCode code) {
    append_number(out, static_cast<std::uint32_t>(code));
  };
  std::visit(
      [&](const auto& value) {
        using Held = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Held, GgufArray>) {
          append_code(ValueCode::array);
          std::visit(
              [&](const auto& elements) {
                using T = typename std::remove_cvref_t<decltype(elements)>::value_type;
                append_code(ValueType<T>::code);
                append_number(out, std::uint64_t{elements.size()});
                for (const T& element : elements) append_one<T>(out, element);
              },
              value);
        } else {
          append_code(ValueType<Held>::code);
          append_one(out, value);
        }
      },
      key_value.value);
}

}  // namespace thalia::formats::gguf

namespace thalia {

std::string gguf_type_name(const GgufValue& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, GgufArray>) {
          return std::visit(
              [](const auto& elements) {
                using T = typename std::remove_cvref_t<decltype(elements)>::value_type;
                std::string name(formats::gguf::ValueType<T>::name);
                name += formats::gguf::kArraySuffix;
                return name;
              },
              held);
        } else {
          return std::string(formats::gguf::ValueType<Held>::name);
        }
      },
      value);
}

}  // namespace thalia
