// One of the names of an enumeration, as arguments spell it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "thalia/error.h"

namespace thalia::python {

/// @throws UsageError (bad_argument) naming the argument and what it can be.
[[noreturn]] inline void fail_choice(std::string_view argument, std::string_view value,
                                     std::string_view expected) {
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = std::string(argument),
                    .value = "'" + std::string(value) + "'",
                    .bound = std::string(expected)});
}

template <typename Choice>
using Choices = std::initializer_list<std::pair<std::string_view, Choice>>;

/// What stands beside the name. @throws as fail_choice().
template <typename Choice>
Choice chosen(std::string_view argument, std::string_view value, Choices<Choice> choices) {
  std::string expected;
  for (const auto& [name, choice] : choices) {
    if (name == value) return choice;
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  fail_choice(argument, value, expected);
}

}  // namespace thalia::python
