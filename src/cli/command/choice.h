// Options whose value is one of a few words.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "thalia/error.h"

namespace thalia::cli {

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

/// "none, zstd, lz4"
template <typename T, std::size_t N>
std::string choice_names(const std::array<Choice<T>, N>& choices) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (!names.empty()) names += ", ";
    names += choice.name;
  }
  return names;
}

/// @throws UsageError naming the option, the word and all the words there are.
template <typename T, std::size_t N>
T choose(std::string_view option, std::string_view word, const std::array<Choice<T>, N>& choices) {
  for (const Choice<T>& choice : choices) {
    if (choice.name == word) return choice.value;
  }
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = std::string(option),
                    .value = fmt::format("'{}'", word),
                    .bound = choice_names(choices)});
}

}  // namespace thalia::cli
