// The command line of thalia-demo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace demo {

struct Options {
  std::uint32_t neurons = 100'000;
  std::uint32_t steps = 200;  ///< before the save
  std::uint32_t more = 100;   ///< after it
  std::uint64_t seed = 1;
  unsigned threads = 0;  ///< 0: one a core
  std::filesystem::path folder = "thalia-demo";
  std::filesystem::path thalia;   ///< the program; empty: the one built beside this, or in PATH
  std::filesystem::path figures;  ///< where a step leaves what it measured; empty: nowhere
  std::vector<std::string> arguments;  ///< what is not an option
};

/// What the caller typed is wrong.
class UsageMistake : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws UsageMistake naming the argument, and what it may be.
Options parse_options(const std::vector<std::string>& words);

}  // namespace demo
