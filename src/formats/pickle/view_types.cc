#include "formats/pickle/view_types.h"

#include <vector>

#include "formats/pickle/symbols.h"

namespace thalia::formats::pt {
namespace {

void change_view(Value& view, const Value& name, const ChangedTypes& changed) {
  if (!view.is_object() || name.kind() != Value::Kind::string) return;
  const auto found = changed.find(name.as_string());
  Value* const dtype = view.find("dtype");
  if (found == changed.end() || dtype == nullptr) return;
  if (*dtype == Value(torch_dtype_name(found->second.from)))
    *dtype = Value(torch_dtype_name(found->second.to));
}

}  // namespace

void change_view_types(Value& saved, const ChangedTypes& changed) {
  // Not by recursion: the tree is as deep as somebody made it.
  std::vector<Value*> todo{&saved};
  while (!todo.empty()) {
    Value& value = *todo.back();
    todo.pop_back();
    if (value.is_array()) {
      for (Value& element : value.elements()) todo.push_back(&element);
    } else if (value.is_object()) {
      Value* const view = value.find("view");
      const Value* const name = value.find("tensor");
      if (view != nullptr && name != nullptr) change_view(*view, *name, changed);
      for (Value::Member& member : value.members()) todo.push_back(&member.value);
    }
  }
}

}  // namespace thalia::formats::pt
