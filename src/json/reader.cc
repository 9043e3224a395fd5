// JSON with simdjson's on-demand parser, which reads a text once from front to back. It checks only
// what is looked at; hence Value::finish(), which walks through whatever a visitor leaves, so that
// a text with a fault anywhere is refused. The text is copied once, as the parser needs room after
// it. The parser's memory costs more than reading a short text does: Reader keeps it.
// simdjson never leaves this file: its exceptions become FormatError, and values are handed out by
// reference for the time of a visit. Its strings live in the parser, so they last until the walk
// ends.
#include "json/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <deque>
#include <memory>
#include <new>
#include <string>

#include "base/fail.h"
#include "base/utf8.h"
#include "json/unescape.h"

namespace thalia::json {
namespace {

std::string_view explain(simdjson::error_code code) {
  if (code == simdjson::EMPTY) return "the text is empty";
  if (code == simdjson::UTF8_ERROR) return "the text is not UTF-8";
  if (code == simdjson::STRING_ERROR) return "bad escape in a string";
  if (code == simdjson::UNESCAPED_CHARS) return "control character in a string";
  if (code == simdjson::UNCLOSED_STRING) return "a string has no end";
  if (code == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) return "the text ends early";
  if (code == simdjson::TAPE_ERROR) return "a comma, colon, bracket, key or value is misplaced";
  return simdjson::error_message(code);
}

// A raw token reaches up to the next one and so may end with white space.
std::string_view trim_end(std::string_view token) {
  const std::size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

struct Reader::Memory {
  std::string copy;  ///< of the text, and what simdjson reads after it
  simdjson::ondemand::parser parser;
};

// The parser's state for one text. It owns all strings that it hands out, but for those in
// `memory`.
class Walk {
 public:
  Walk(Reader::Memory& memory, std::string_view text, unsigned max_depth, Dialect dialect,
       std::size_t bracket = 0)
      : parser_(memory.parser),
        bracket_(bracket),
        max_depth_(std::min(max_depth, kDepthCeiling)),
        dialect_(dialect) {
    std::string& copy = memory.copy;
    copy.clear();
    copy.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    copy.append(text).append(simdjson::SIMDJSON_PADDING, '\0');
    text_ = std::string_view(copy).substr(0, text.size());
  }

  bool is_python() const noexcept { return dialect_ == Dialect::python; }

  // Called before simdjson enters an object or array, so that its own limit is never reached.
  void check_depth(unsigned depth) const {
    if (depth > max_depth_) fail_limit("", "max_json_depth", depth, max_depth_);
  }

  void run_object(const MemberVisitor& visit) {
    run("object", [&] {
      check_depth(1);
      members(document_.get_object(), 1, visit);
    });
  }

  // The text has been put in brackets: simdjson treats a number or string as the whole document
  // differently from one inside an array. Brackets count neither as depth nor as bytes in messages.
  void run_value(const ElementVisitor& visit) {
    run("value", [&] {
      bool is_there = false;
      for (auto element : document_.get_array()) {
        if (is_there) fail("there is more than one value");
        is_there = true;
        simdjson::ondemand::value parsed = element.value();
        Value value(*this, &parsed, 0);
        visit(value);
        value.finish();
      }
      if (!is_there) fail(explain(simdjson::EMPTY));
    });
  }

  void members(simdjson::ondemand::object object, unsigned depth, const MemberVisitor& visit) {
    for (auto field : object) {
      const std::string_view key =
          is_python() ? decoded(field.key()) : checked(field.unescaped_key());
      simdjson::ondemand::value parsed = field.value();
      Value value(*this, &parsed, depth);
      visit(key, value);
      value.finish();
    }
  }

  void elements(simdjson::ondemand::array array, unsigned depth, const ElementVisitor& visit) {
    for (auto element : array) {
      simdjson::ondemand::value parsed = element.value();
      Value value(*this, &parsed, depth);
      visit(value);
      value.finish();
    }
  }

  // An escape can spell a lone surrogate, whose decoded bytes are not UTF-8.
  std::string_view checked(std::string_view decoded) {
    if (!simdjson::validate_utf8(decoded)) fail("lone surrogate in a string");
    return decoded;
  }

  // The dialect of Python allows lone surrogates, which simdjson does not decode, so escapes are
  // decoded here. simdjson has checked by now that the string ends and is UTF-8. A deque keeps the
  // decoded strings where they are while it grows.
  std::string_view decoded(simdjson::ondemand::raw_json_string raw) {
    const std::size_t start = static_cast<std::size_t>(raw.raw() - text_.data());
    const std::string_view rest = text_.substr(start);
    std::size_t end = 0;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    const std::string_view escaped = rest.substr(0, end);
    if (escaped.find('\\') == std::string_view::npos) return escaped;
    auto text = unescape_wtf8(escaped);
    if (!text) fail(explain(simdjson::STRING_ERROR));
    return strings_.emplace_back(*std::move(text));
  }

  [[noreturn]] void fail(std::string_view what) {
    std::string message = fmt::format("bad JSON: {}", what);
    const char* location = nullptr;
    if (document_.is_alive() && !document_.current_location().get(location)) {
      message += fmt::format(", near byte {} of {}", location - text_.data() - bracket_,
                             text_.size() - 2 * bracket_);
    }
    throw FormatError(ErrorCode::bad_json, std::move(message));
  }

 private:
  template <typename Work>
  void run(std::string_view what, const Work& work) {
    try {
      // One level more than is ever entered, as simdjson with assertions stops at its own ceiling.
      constexpr std::size_t kLevels = kDepthCeiling + 2;
      if (parser_.capacity() < text_.size() || parser_.max_depth() != kLevels)
        if (const auto error = parser_.allocate(text_.size(), kLevels))
          throw simdjson::simdjson_error(error);
      // Newer versions of simdjson skip it.
      if (text_.starts_with("\xEF\xBB\xBF")) fail("a byte order mark");
      document_ = parser_.iterate(
          simdjson::padded_string_view(text_, text_.size() + simdjson::SIMDJSON_PADDING));
      work();
      // simdjson does not look past the outermost value.
      if (document_.current_location().error() != simdjson::OUT_OF_BOUNDS) {
        fail(fmt::format("there is more after the {}", what));
      }
    } catch (const simdjson::simdjson_error& error) {
      if (error.error() == simdjson::MEMALLOC) throw std::bad_alloc();
      if (error.error() == simdjson::INCORRECT_TYPE) fail("the text is no object");
      fail(explain(error.error()));
    }
  }

  simdjson::ondemand::parser& parser_;
  std::string_view text_{};
  std::size_t bracket_;  ///< bytes before and after the text that are not its own
  unsigned max_depth_;
  Dialect dialect_;
  std::deque<std::string> strings_;  ///< decoded here, and handed out
  simdjson::ondemand::document document_{};
};

// Checked here because simdjson refuses integers of more than 64 bits, which are well formed.
bool is_number(std::string_view token) noexcept {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < token.size() && token[i] >= '0' && token[i] <= '9') ++i;
    return i - start;
  };
  const auto at = [&](char c) { return i < token.size() && token[i] == c; };
  if (at('-')) ++i;
  const bool leading_zero = at('0');
  const std::size_t whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (at('.')) {
    ++i;
    if (digits() == 0) return false;
  }
  if (at('e') || at('E')) {
    ++i;
    if (at('+') || at('-')) ++i;
    if (digits() == 0) return false;
  }
  return i == token.size();
}

bool is_python_number(std::string_view token) {
  return token == "NaN" || token == "Infinity" || token == "-Infinity";
}

std::string_view kind_name(Kind kind) noexcept {
  switch (kind) {
    case Kind::object:
      return "object";
    case Kind::array:
      return "array";
    case Kind::string:
      return "string";
    case Kind::number:
      return "number";
    case Kind::boolean:
      return "boolean";
    case Kind::null:
      return "null";
  }
  return "unknown";
}

Value::Value(Walk& walk, void* parsed, unsigned depth)
    : walk_(walk), parsed_(parsed), depth_(depth) {
  using simdjson::ondemand::json_type;
  auto& value = *static_cast<simdjson::ondemand::value*>(parsed);
  // simdjson knows no NaN and no infinities, so the token is looked at before its type is asked
  // for.
  if (walk.is_python()) {
    token_ = trim_end(value.raw_json_token());
    kind_ = Kind::number;
    if (is_python_number(token_)) return;
    token_ = {};
  }
  const json_type type = value.type();
  if (type == json_type::object) {
    kind_ = Kind::object;
  } else if (type == json_type::array) {
    kind_ = Kind::array;
  } else if (type == json_type::string) {
    kind_ = Kind::string;
  } else {
    token_ = trim_end(value.raw_json_token());
    kind_ = type == json_type::number    ? Kind::number
            : type == json_type::boolean ? Kind::boolean
                                         : Kind::null;
    // simdjson goes by the first character, so "trux" is a boolean so far.
    const bool good = kind_ == Kind::number    ? is_number(token_)
                      : kind_ == Kind::boolean ? token_ == "true" || token_ == "false"
                                               : token_ == "null";
    if (!good) walk_.fail(fmt::format("'{}' is no value", printable(token_, 40)));
  }
}

std::optional<std::uint64_t> Value::unsigned_integer() const noexcept {
  if (kind_ != Kind::number) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = token_.data() + token_.size();
  const auto [stopped, error] = std::from_chars(token_.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

// The text decides what kind a value is. Where a caller expects another, the text is at fault, not
// the caller.
void Value::take(Kind wanted) {
  assert(!taken_);
  if (kind_ != wanted)
    walk_.fail(fmt::format("a value of kind {} where {} was expected", kind_name(kind_),
                           kind_name(wanted)));
  taken_ = true;
}

std::string_view Value::string() {
  take(Kind::string);
  auto& value = *static_cast<simdjson::ondemand::value*>(parsed_);
  if (walk_.is_python()) return walk_.decoded(value.get_raw_json_string());
  return walk_.checked(value.get_string());
}

void Value::for_each_member(const MemberVisitor& visit) {
  take(Kind::object);
  walk_.check_depth(depth_ + 1);
  walk_.members(static_cast<simdjson::ondemand::value*>(parsed_)->get_object(), depth_ + 1, visit);
}

void Value::for_each_element(const ElementVisitor& visit) {
  take(Kind::array);
  walk_.check_depth(depth_ + 1);
  walk_.elements(static_cast<simdjson::ondemand::value*>(parsed_)->get_array(), depth_ + 1, visit);
}

void Value::finish() {
  if (taken_) return;
  if (kind_ == Kind::object) {
    for_each_member([](std::string_view, Value&) {});
  } else if (kind_ == Kind::array) {
    for_each_element([](Value&) {});
  } else if (kind_ == Kind::string) {
    string();
  }
}

Reader::Reader() : memory_(std::make_unique<Memory>()) {}

Reader::~Reader() = default;

void Reader::object(std::string_view text, unsigned max_depth, const MemberVisitor& visit,
                    Dialect dialect) {
  Walk(*memory_, text, max_depth, dialect).run_object(visit);
}

void Reader::value(std::string_view text, unsigned max_depth, const ElementVisitor& visit,
                   Dialect dialect) {
  Walk(*memory_, fmt::format("[{}]", text), max_depth, dialect, 1).run_value(visit);
}

void walk_object(std::string_view text, unsigned max_depth, const MemberVisitor& visit,
                 Dialect dialect) {
  Reader().object(text, max_depth, visit, dialect);
}

void walk_value(std::string_view text, unsigned max_depth, const ElementVisitor& visit,
                Dialect dialect) {
  Reader().value(text, max_depth, visit, dialect);
}

void check_object(std::string_view text, unsigned max_depth) {
  walk_object(text, max_depth, [](std::string_view, Value&) {});
}

}  // namespace thalia::json
