#include "demo/options.h"

#include <charconv>

#include "spiking/plan.h"

namespace demo {
namespace {

template <typename Number>
Number parse_number(const std::string& option, const std::string& text, std::uint64_t least,
                    std::uint64_t most) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw UsageMistake(option + " " + text + ": not a number from " + std::to_string(least) +
                       " to " + std::to_string(most));
  }
  return static_cast<Number>(value);
}

}  // namespace

Options parse_options(const std::vector<std::string>& words) {
  constexpr std::uint64_t kMostNeurons = 40'000'000;
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      options.arguments.push_back(word);
      continue;
    }
    if (i + 1 == words.size())
      throw UsageMistake(word + ": an unknown option, or its value is missing");
    const std::string& value = words[++i];
    if (word == "--neurons") {
      options.neurons =
          parse_number<std::uint32_t>(word, value, spiking::kMinNeurons, kMostNeurons);
    } else if (word == "--steps") {
      options.steps = parse_number<std::uint32_t>(word, value, 1, 1'000'000'000);
    } else if (word == "--more") {
      options.more = parse_number<std::uint32_t>(word, value, 1, 1'000'000'000);
    } else if (word == "--seed") {
      options.seed = parse_number<std::uint64_t>(word, value, 0, ~std::uint64_t{0});
    } else if (word == "--threads") {
      options.threads = parse_number<unsigned>(word, value, 0, 1024);
    } else if (word == "--dir") {
      options.folder = value;
    } else if (word == "--thalia") {
      options.thalia = value;
    } else if (word == "--figures") {
      options.figures = value;
    } else {
      throw UsageMistake(word + ": an unknown option");
    }
  }
  return options;
}

}  // namespace demo
