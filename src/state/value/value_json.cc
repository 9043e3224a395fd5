// Values from JSON texts and back. A text of few bytes can become values of many: an empty array is
// two bytes of text and some hundred of memory. Each value is therefore charged against the limit
// on allocations before it is built. Recursion is limited by max_json_depth, in the walker.
#include "state/value/value_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/memory/allocation_limit.h"
#include "json/writer.h"

namespace thalia {
namespace {

// A text may come out of compressed frames, so that the bytes on disk, which the limit is computed
// from, are assumed to be an eighth of it.
constexpr std::uint64_t kBytesOfTextPerByteOnDisk = 8;

// What the values of one text take in memory, against what the limits allow for it.
class ValueMemory {
 public:
  explicit ValueMemory(std::uint64_t most) : most_(std::max(most, kAlwaysAllowed)) {}

  void charge(std::uint64_t bytes) {
    used_ += bytes;
    if (used_ > most_) fail_limit("", "max_allocation_bytes", used_, most_);
  }
  void charge_member(std::string_view name) { charge(kMemberBytes + name.size()); }

 private:
  // Small texts are read under any limit.
  static constexpr std::uint64_t kAlwaysAllowed = 1 << 20;
  // The member, and its name once more in the index of ObjectMembers with what a node takes.
  static constexpr std::uint64_t kMemberBytes = sizeof(Value::Member) + 2 * sizeof(std::string);

  std::uint64_t most_;
  std::uint64_t used_ = 0;
};

Value parsed(json::Value& json, ValueMemory& memory);

// The members of one object while it is read. Where a name occurs twice the last value counts, as
// in Python. The index keeps large objects linear.
class ObjectMembers {
 public:
  void add(std::string_view name, Value value) {
    // The first place and the last value, as a Python dict keeps them.
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

Value parsed(json::Value& json, ValueMemory& memory) {
  memory.charge(2 * sizeof(Value));  // and what a vector that grows leaves behind
  switch (json.kind()) {
    case json::Kind::object: {
      ObjectMembers members;
      json.for_each_member([&](std::string_view name, json::Value& value) {
        memory.charge_member(name);
        members.add(name, parsed(value, memory));
      });
      return members.take();
    }
    case json::Kind::array: {
      Value array = Value::array();
      json.for_each_element(
          [&](json::Value& element) { array.push_back(parsed(element, memory)); });
      return array;
    }
    case json::Kind::string: {
      const std::string_view text = json.string();
      memory.charge(text.size());
      return text;
    }
    case json::Kind::number:
      memory.charge(json.token().size());
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
      // NaN or Infinity: no JSON number ends in these letters.
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

// Both the text's length and what its values take are limited.
ValueMemory memory_for(std::string_view json, const ReadLimits& limits) {
  io::check_json_length("", json.size(), limits, json.size());
  return ValueMemory(io::allocation_limit(limits, json.size() / kBytesOfTextPerByteOnDisk));
}

}  // namespace

Value state::parse_json(std::string_view json, const ReadLimits& limits, json::Dialect dialect) {
  ValueMemory memory = memory_for(json, limits);
  Value result;
  json::walk_value(
      json, limits.max_json_depth, [&](json::Value& value) { result = parsed(value, memory); },
      dialect);
  return result;
}

Value state::parse_json_object(std::string_view json, const ReadLimits& limits,
                               json::Dialect dialect) {
  ValueMemory memory = memory_for(json, limits);
  ObjectMembers members;
  json::walk_object(
      json, limits.max_json_depth,
      [&](std::string_view name, json::Value& value) {
        memory.charge_member(name);
        members.add(name, parsed(value, memory));
      },
      dialect);
  return members.take();
}

Value parse_json(std::string_view json, const ReadLimits& limits) {
  return state::parse_json(json, limits, json::Dialect::rfc8259);
}

std::string to_json(const Value& value) {
  std::string text;
  JsonWriter json(text);
  std::string path;
  write(json, value, path);
  return text;
}

}  // namespace thalia
