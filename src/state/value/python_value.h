// What stands for a value of Python's in a tree. docs/format/states.md, "Values of Python".
#pragma once

#include <utility>

#include "thalia/state/value.h"

namespace thalia::state {

/// The value itself, of an object of type python; nullptr for any other. In paths and for growth
/// the value is all that counts.
inline const Value* python_value(const Value& object) {
  const Value* type = object.find("_type");
  const bool is_python =
      type != nullptr && type->kind() == Value::Kind::string && type->as_string() == "python";
  return is_python ? object.find("_value") : nullptr;
}
inline Value* python_value(Value& object) {
  return const_cast<Value*>(python_value(std::as_const(object)));
}

}  // namespace thalia::state
