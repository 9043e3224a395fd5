#include <stdexcept>

#include "crash/operation.h"

namespace thalia::crash {

std::vector<const Operation*> operations(bool broken) {
  std::vector<const Operation*> all;
  const auto add = [&](std::span<const Operation> some) {
    for (const Operation& operation : some) all.push_back(&operation);
  };
  if (broken) {
    add(broken_operations());
  } else {
    add(save_operations());
    add(in_place_operations());
  }
  return all;
}

const Operation& operation_named(std::string_view name) {
  for (const bool broken : {false, true})
    for (const Operation* operation : operations(broken))
      if (operation->name == name) return *operation;
  throw std::runtime_error("no such operation: " + std::string(name));
}

}  // namespace thalia::crash
