// What JSON cannot say is written as an object with a `_type`: NaN and infinities as `number`,
// tensors as what the caller substitutes. An object of the user that has such a `_type` of its own
// is wrapped in one of type `object`, so that every tree reads back as itself. A path is kept for
// errors; it grows and shrinks with the recursion.

#include "state/value/tree_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/value/python_value.h"

namespace thalia::state {
namespace {

constexpr std::string_view kType = "_type";

// The only texts of a Value's number that are no JSON numbers: NaN, Infinity and -Infinity.
bool has_no_json_text(const std::string& number) {
  return number == "NaN" || number.ends_with("Infinity");
}

// True of a user's object that a reader would take for one of the marks. `tensor`, `scalar` and
// `config` are those of states (docs/format/states.md).
bool needs_escape(const Value& object) {
  constexpr std::array<std::string_view, 5> kTypes{"tensor", "scalar", "config", "number",
                                                   "object"};
  const Value* type = object.find(kType);
  return type != nullptr && type->kind() == Value::Kind::string &&
         std::ranges::find(kTypes, type->as_string()) != kTypes.end();
}

// A dictionary whose keys are not all texts, or whose class is told: pairs of keys and values.
bool holds_pairs(const Value& object) {
  constexpr std::array<std::string_view, 3> kKinds{"dict", "ordered", "counter"};
  const Value* kind = object.find("_kind");
  return kind != nullptr && kind->kind() == Value::Kind::string &&
         std::ranges::find(kKinds, kind->as_string()) != kKinds.end();
}

class TreeWriter {
 public:
  TreeWriter(JsonWriter& json, std::string path, const Substitute& substitute)
      : json_(json), path_(std::move(path)), substitute_(substitute) {}

  void write(const Value& value) {
    if (substitute_ && substitute_(json_, path_, value)) return;
    switch (value.kind()) {
      case Value::Kind::null:
        json_.null();
        break;
      case Value::Kind::boolean:
        json_.value(value.as_bool());
        break;
      case Value::Kind::number:
        number(value.number_text());
        break;
      case Value::Kind::string:
        check_utf8(value.as_string());
        json_.value(value.as_string());
        break;
      case Value::Kind::array:
        array(value);
        break;
      case Value::Kind::object:
        if (needs_escape(value)) {
          json_.begin_object().member(kType, "object").key("_members");
          members(value);
          json_.end_object();
        } else {
          members(value);
        }
        break;
      case Value::Kind::tensor:
        refuse("a tensor", "values without tensors");
    }
  }

 private:
  void number(const std::string& text) {
    if (!has_no_json_text(text)) {
      json_.raw(text);
      return;
    }
    // A reader that knows nothing of the mark still sees JSON.
    json_.begin_object().member(kType, "number").member("_text", text).end_object();
  }

  void array(const Value& value) {
    const std::size_t here = path_.size();
    json_.begin_array();
    for (std::size_t i = 0; i < value.size(); ++i) {
      path_ += fmt::format("[{}]", i);
      write(value.elements()[i]);
      path_.resize(here);
    }
    json_.end_array();
  }

  void members(const Value& value) {
    const std::size_t here = path_.size();
    const Value* python = python_value(value);
    json_.begin_object();
    for (const auto& [name, member] : value.members()) {
      check_utf8(name);
      json_.key(name);
      if (&member == python) {
        member.is_array() && holds_pairs(value) ? pairs(member) : write(member);
      } else {
        add_to_path(name);
        write(member);
      }
      path_.resize(here);
    }
    json_.end_object();
  }

  void pairs(const Value& value) {
    const std::size_t here = path_.size();
    json_.begin_array();
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Value& pair = value.elements()[i];
      if (pair.is_array() && pair.size() == 2) {
        json_.begin_array();
        add_to_path("key");
        write(pair.elements()[0]);
        path_.resize(here);
        add_key(pair.elements()[0], i);
        write(pair.elements()[1]);
        json_.end_array();
      } else {
        path_ += fmt::format("[{}]", i);
        write(pair);
      }
      path_.resize(here);
    }
    json_.end_array();
  }

  void add_to_path(std::string_view name) {
    if (!path_.empty()) path_ += '.';
    path_ += name;
  }

  void add_key(const Value& key, std::size_t place) {
    if (key.kind() == Value::Kind::string) {
      add_to_path(key.as_string());
    } else if (key.kind() == Value::Kind::number) {
      add_to_path(key.number_text());
    } else {
      path_ += fmt::format("[{}]", place);
    }
  }

  void check_utf8(std::string_view text) {
    if (!is_valid_utf8(text)) refuse(printable(text, 40), "UTF-8");
  }

  [[noreturn]] void refuse(std::string value, std::string bound) {
    fail_argument(ErrorCode::bad_argument, printable(path_), std::move(value), std::move(bound));
  }

  JsonWriter& json_;
  std::string path_;
  const Substitute& substitute_;
};

[[noreturn]] void refuse_member(std::string_view type, std::string_view member,
                                std::string_view bound) {
  throw FormatError(
      ErrorCode::bad_value, fmt::format("a '{}' in a state", printable(type)),
      {.section = "metadata", .field = std::string(member), .bound = std::string(bound)});
}

std::optional<Value> resolve_known(std::string_view type, Value& object) {
  if (type == "number") {
    const std::string& text = require_text(object, "_text");
    if (!has_no_json_text(text)) refuse_member(type, "_text", "NaN, Infinity or -Infinity");
    return Value::number(text);
  }
  if (type == "object") {
    Value* members = object.find("_members");
    if (members == nullptr || !members->is_object()) refuse_member(type, "_members", "an object");
    return std::move(*members);
  }
  return std::nullopt;
}

}  // namespace

void write_tree(JsonWriter& json, const Value& tree, std::string path,
                const Substitute& substitute) {
  TreeWriter(json, std::move(path), substitute).write(tree);
}

Value read_tree(Value tree, const Resolve& resolve) {
  if (tree.is_array()) {
    for (Value& element : tree.elements()) element = read_tree(std::move(element), resolve);
    return tree;
  }
  if (!tree.is_object()) return tree;
  const Value* type = tree.find(kType);
  if (type != nullptr && type->kind() == Value::Kind::string) {
    const std::string name = type->as_string();
    // The marks of every tree come first, those of one caller after them.
    if (auto known = resolve_known(name, tree)) {
      // A `number` is done; the members of an `object` are still to be read.
      if (!known->is_object()) return *std::move(known);
      tree = *std::move(known);  // whose own `_type` means nothing
    } else if (resolve) {
      if (auto resolved = resolve(name, tree)) return *std::move(resolved);
    }
  }
  for (auto& [name, member] : tree.members()) member = read_tree(std::move(member), resolve);
  return tree;
}

bool is_plain_json(const Value& tree) noexcept {
  switch (tree.kind()) {
    case Value::Kind::array:
      return std::ranges::all_of(tree.elements(), is_plain_json);
    case Value::Kind::object:
      return python_value(tree) == nullptr &&
             std::ranges::all_of(tree.members(), [](const Value::Member& member) {
               return is_valid_utf8(member.name) && is_plain_json(member.value);
             });
    case Value::Kind::number:
      return !has_no_json_text(tree.number_text());
    case Value::Kind::string:
      return is_valid_utf8(tree.as_string());
    case Value::Kind::tensor:
      return false;
    case Value::Kind::null:
    case Value::Kind::boolean:
      break;
  }
  return true;
}

const std::string& require_text(const Value& object, std::string_view member) {
  const Value* text = object.find(member);
  if (text == nullptr || text->kind() != Value::Kind::string) {
    const Value* type = object.find(kType);
    refuse_member(type != nullptr && type->kind() == Value::Kind::string ? type->as_string() : "",
                  member, "a text");
  }
  return text->as_string();
}

}  // namespace thalia::state
