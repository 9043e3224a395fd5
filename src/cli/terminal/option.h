// How options are declared: one shape for all of them.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "thalia/error.h"
#include "thalia/formats/safetensors.h"

namespace thalia::cli {

/// What stands for the value of an option, in words that offer() takes; the completion knows them.
inline constexpr const char* kFile = "@file";
inline constexpr const char* kFolder = "@folder";
inline constexpr const char* kRegion = "@region:1";    ///< of the command's first argument, a file
inline constexpr const char* kRegions = "@regions:1";  ///< several, with commas between them
inline constexpr const char* kRegionsOfSecond = "@regions:2";
inline constexpr const char* kTensor = "@tensor:1";
inline constexpr const char* kPhase = "@phase:1";  ///< of the run that is the first argument
inline constexpr const char* kGate = "@gate:1";

/// Says what a shell can offer as the option's value: words, or what stands for some, with "|"
/// between them.
inline CLI::Option* offer(CLI::Option* option, const std::string& words) {
  return option->type_name("|" + words);
}

/// What offer() was told; empty if it was not called.
inline std::string offered(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.starts_with('|') ? name.substr(1) : "";
}

/// CLI11 takes -1 for the largest number there is.
inline CLI::Validator not_negative() {
  return CLI::Validator(
      [](const std::string& text) {
        const std::size_t first = text.find_first_not_of(' ');
        const bool is_negative = first != std::string::npos && text[first] == '-';
        return is_negative ? fmt::format("got '{}', expected a number from 0", text)
                           : std::string();
      },
      "");
}

template <typename T>
inline constexpr bool kIsCount = std::is_unsigned_v<T> && !std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool kIsCount<std::optional<T>> = kIsCount<T>;

/// `usage` is its names, and what help shows in the place of its value: "-o,--output OUT". One that
/// collects values may be repeated, and takes one each time.
template <typename T>
CLI::Option* add_option(CLI::App& app, std::string_view usage, T& value, std::string help) {
  const std::size_t end = std::min(usage.find(' '), usage.size());
  const std::string names(usage.substr(0, end));
  CLI::Option* const option = [&] {
    if constexpr (std::is_invocable_v<T, const std::string&>) {
      return app.add_option_function<std::string>(names, value, std::move(help));
    } else {
      return app.add_option(names, value, std::move(help));
    }
  }();
  if (end < usage.size()) option->option_text(std::string(usage.substr(end + 1)));
  if constexpr (kIsCount<T>) option->check(not_negative());
  if (usage.starts_with('-')) option->allow_extra_args(false);
  return option;
}

/// For transform(): a number of bytes, as 512MiB.
inline CLI::Validator size_value() {
  // Without what CLI11 would add to the type_name().
  return CLI::Validator(
      [](std::string& text) {
        std::string refused = not_negative()(text);
        return refused.empty() ? CLI::AsSizeValue(false)(text) : refused;
      },
      "");
}

/// How patterns of tensors are written, for the footer of a command that takes them.
inline constexpr const char* kPatternHelp =
    "Patterns: '*' stands for any characters, '?' for one, '.' and '/' are the same, and the "
    "beginning of a name may be left out. A region's name stands for all of the region.";

/// An argument that names a file, or several, and has to be there.
template <typename T>
CLI::Option* add_file(CLI::App& app, const char* name, T& value, std::string help) {
  return offer(app.add_option(name, value, std::move(help))->required(), kFile);
}

/// For transform(): of a folder, the file that opens the model in it.
inline CLI::Validator model_file() {
  return CLI::Validator(
      [](std::string& path) {
        path = find_model(path).string();
        return std::string();
      },
      "");
}

/// An argument that names a checkpoint to read, or several: a file, or the folder of a model.
template <typename T>
CLI::Option* add_model(CLI::App& app, const char* name, T& value, std::string help) {
  return add_file(app, name, value, std::move(help))->transform(model_file());
}

/// Declares --dense.
inline void add_dense(CLI::App& app, bool& dense) {
  app.add_flag(
      "--dense", dense,
      "All elements of sparse tensors, with their zeros: npy always has them, other formats "
      "without sparse tensors want this to be asked for");
}

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

/// The words of some choices, with `separator` between them.
std::string choice_names(const auto& choices, std::string_view separator) {
  std::string names;
  for (const auto& choice : choices) {
    if (!names.empty()) names += separator;
    names += choice.name;
  }
  return names;
}

/// An option whose value is one of a few words. Another word is a UsageError that names the option,
/// the word and all the words there are.
template <typename T, typename Choices>
CLI::Option* add_choice(CLI::App& app, std::string_view usage, T& value, const Choices& choices,
                        std::string help) {
  const std::string option(usage.substr(0, usage.find(' ')));
  const auto choose = [&value, choices, option](const std::string& word) {
    for (const auto& choice : choices) {
      if (choice.name != word) continue;
      value = choice.value;
      return;
    }
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = option,
                      .value = fmt::format("'{}'", word),
                      .bound = choice_names(choices, ", ")});
  };
  return offer(add_option(app, usage, choose, std::move(help)), choice_names(choices, "|"));
}

}  // namespace thalia::cli
