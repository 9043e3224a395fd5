#include "cli/print/error_json.h"

#include <new>
#include <string>
#include <string_view>

#include "cli/print/complaint.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"

namespace thalia::cli {

std::string error_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  std::string text = error.what();
  // The library names its own limit, and what it does on request; the user knows an option.
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    const auto says = [&](std::string_view words) {
      return known->message().find(words) != std::string::npos;
    };
    if (known->code() == ErrorCode::limit_exceeded && says("max_allocation_bytes"))
      text += " (--max-memory SIZE raises it)";
    if (says("is read on request only")) text += " (--old reads it)";
    if (says("is written on request only")) text += " (--all-types writes it)";
  }
  if (const auto* usage = dynamic_cast<const UsageError*>(&error);
      usage != nullptr && usage->code() == ErrorCode::exists) {
    text += "; --force replaces it";
  }
  return text;
}

void add_error(JsonWriter& json, const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  json.begin_object();
  json.member("message", as_utf8(error_text(error)));
  json.member("code", known != nullptr ? error_code_name(known->code()) : "other");
  if (known != nullptr) {
    const ErrorContext& context = known->context();
    const auto add = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) json.member(key, as_utf8(value));
    };
    add("path", context.path);
    add("section", context.section);
    add("field", context.field);
    add("region", context.region);
    add("tensor", context.tensor);
    if (context.offset) json.member("offset", *context.offset);
    add("value", context.value);
    add("expected", context.bound);
  }
  json.end_object();
}

int complain_of(const std::exception& error, bool as_json, int status) {
  if (!as_json) return complain(error_text(error), status);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", "thalia.error.1").key("error");
  add_error(json, error);
  json.end_object();
  return complain_line(escape_unsafe(text), status);
}

}  // namespace thalia::cli
