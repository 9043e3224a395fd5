#include "store/run/toml.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

[[noreturn]] void refuse_toml(const char* expected) {
  throw FormatError(ErrorCode::bad_value, fmt::format("no TOML: the parser expected {}", expected));
}

}  // namespace
}  // namespace thalia::store

// toml++ limits how deep a text may be nested, and checks its UTF-8. But it asserts of some texts
// what it should refuse, "[=]" among them, and assumes the same under NDEBUG, which compilers may
// take for a fact. Here an assertion that fails is an error of the text, in every build. And its
// question whether a letter is white space has no end for some, U+00E9 among them: here it is no.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expr) ((expr) ? void() : ::thalia::store::refuse_toml(#expr))
#pragma push_macro("NDEBUG")
#undef NDEBUG
// The parts have other names from version 3.4 on.
#if __has_include(<toml++/impl/unicode.hpp>)
#include <toml++/impl/forward_declarations.hpp>
#else
#include <toml++/impl/forward_declarations.h>
#endif
#pragma push_macro("TOML_UNREACHABLE")
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#if __has_include(<toml++/impl/unicode.hpp>)
#include <toml++/impl/unicode.hpp>
#else
#include <toml++/impl/unicode.h>
#endif
#pragma pop_macro("TOML_UNREACHABLE")
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace thalia::store {
namespace {

Value value_of(const toml::node& node);

Value value_of(const toml::table& table) {
  Value object = Value::object();
  for (const auto& [key, node] : table) object.add(std::string(key.str()), value_of(node));
  return object;
}

Value value_of(const toml::array& array) {
  Value list = Value::array();
  for (const toml::node& node : array) list.push_back(value_of(node));
  return list;
}

template <typename Time>
Value text_of(const Time& time) {
  std::ostringstream text;
  text << time;
  return Value(text.str());
}

Value value_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return value_of(*node.as_table());
    case toml::node_type::array:
      return value_of(*node.as_array());
    case toml::node_type::string:
      return Value(node.as_string()->get());
    case toml::node_type::integer:
      return Value(node.as_integer()->get());
    case toml::node_type::floating_point:
      return Value(node.as_floating_point()->get());
    case toml::node_type::boolean:
      return Value(node.as_boolean()->get());
    case toml::node_type::date:
      return text_of(node.as_date()->get());
    case toml::node_type::time:
      return text_of(node.as_time()->get());
    case toml::node_type::date_time:
      return text_of(node.as_date_time()->get());
    case toml::node_type::none:
      break;
  }
  return {};
}

}  // namespace

Value parse_toml(std::string_view text) {
  try {
    return value_of(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw FormatError(ErrorCode::bad_value,
                      fmt::format("no TOML: {}, line {}", printable(error.description()),
                                  error.source().begin.line));
  }
}

}  // namespace thalia::store
