// Values from JSON texts and back.
#include "model/value_json.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "thalia/json_writer.h"

namespace thalia {
namespace {

Value parsed(json::Value& json);

// Members of one object as they are read: of a name that occurs twice the last value counts.
class Members {
 public:
  void add(std::string_view name, Value value) {
    const auto [known, is_new] = places_.try_emplace(std::string(name), object_.size());
    if (is_new) {
      object_.add(std::string(name), std::move(value));
    } else {
      object_.members()[known->second].value = std::move(value);
    }
  }
  Value take() { return std::move(object_); }

 private:
  Value object_ = Value::object();
  std::unordered_map<std::string, std::size_t> places_;
};

Value parsed(json::Value& json) {
  switch (json.kind()) {
    case json::Kind::object: {
      Members members;
      json.for_each_member(
          [&](std::string_view name, json::Value& value) { members.add(name, parsed(value)); });
      return members.take();
    }
    case json::Kind::array: {
      Value array = Value::array();
      json.for_each_element([&](json::Value& element) { array.push_back(parsed(element)); });
      return array;
    }
    case json::Kind::string:
      return json.string();
    case json::Kind::number:
      return Value::number(std::string(json.token()));
    case json::Kind::boolean:
      return json.token() == "true";
    case json::Kind::null:
      break;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& path, std::string value, std::string bound) {
  fail_argument(ErrorCode::bad_argument, path.empty() ? "value" : path.substr(1), std::move(value),
                std::move(bound));
}

void write(JsonWriter& json, const Value& value, std::string& path) {
  const std::size_t here = path.size();
  switch (value.kind()) {
    case Value::Kind::null:
      json.null();
      break;
    case Value::Kind::boolean:
      json.value(value.as_bool());
      break;
    case Value::Kind::number: {
      const std::string& text = value.number_text();
      if (text.back() == 'N' || text.back() == 'y') refuse(path, text, "a number that JSON has");
      json.raw(text);
      break;
    }
    case Value::Kind::string:
      if (!is_valid_utf8(value.as_string()))
        refuse(path, printable(value.as_string(), 40), "UTF-8");
      json.value(value.as_string());
      break;
    case Value::Kind::array:
      json.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) {
        path += fmt::format("[{}]", i);
        write(json, value.elements()[i], path);
        path.resize(here);
      }
      json.end_array();
      break;
    case Value::Kind::object:
      json.begin_object();
      for (const auto& [name, member] : value.members()) {
        path += '.';
        path += printable(name, 80);
        if (!is_valid_utf8(name)) refuse(path, "a name that is no UTF-8", "UTF-8");
        json.key(name);
        write(json, member, path);
        path.resize(here);
      }
      json.end_object();
      break;
    case Value::Kind::tensor:
      refuse(path, "a tensor", "values that JSON has");
  }
}

void check_bytes(std::string_view json, const ReadLimits& limits) {
  if (json.size() > limits.max_json_bytes)
    fail_limit("", "max_json_bytes", json.size(), limits.max_json_bytes);
}

}  // namespace

Value model::parse_json(std::string_view json, const ReadLimits& limits, json::Dialect dialect) {
  check_bytes(json, limits);
  Value result;
  json::walk_value(
      json, limits.max_json_depth, [&](json::Value& value) { result = parsed(value); }, dialect);
  return result;
}

Value model::parse_json_object(std::string_view json, const ReadLimits& limits,
                               json::Dialect dialect) {
  check_bytes(json, limits);
  Members members;
  json::walk_object(
      json, limits.max_json_depth,
      [&](std::string_view name, json::Value& value) { members.add(name, parsed(value)); },
      dialect);
  return members.take();
}

Value parse_json(std::string_view json, const ReadLimits& limits) {
  return model::parse_json(json, limits, json::Dialect::rfc8259);
}

std::string to_json(const Value& value) {
  std::string text;
  JsonWriter json(text);
  std::string path;
  write(json, value, path);
  return text;
}

}  // namespace thalia
