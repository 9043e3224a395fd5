// Takes the options of its own out of the arguments and leaves the others to Google Benchmark,
// which refuses what it does not know.
#include "settings.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace thalia::bench {
namespace {

std::uint64_t number(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0)
    throw std::invalid_argument(option + ": '" + text + "' is no positive number");
  return value;
}

}  // namespace

const char* const kSettingsHelp =
    "  --smoke        tiny sizes and one pair: does it still run?\n"
    "  --pairs N      alternated pairs a comparison (7)\n"
    "  --mib N        size of what is saved, loaded and verified (512)\n"
    "  --memory DIR   folder in memory, to save to (/dev/shm)\n"
    "  --dir DIR      folder on a disk ($THALIA_BENCH_DIR, else /var/tmp)\n"
    "  --only TEXT    only the comparisons whose name holds TEXT\n"
    "  --data FILE    codec: the tensors of this safetensors file; step: the folder\n"
    "                 of training_run.py --small-steps\n"
    "  --json FILE    write environment and results there too\n"
    "Other arguments go to Google Benchmark, as --benchmark_filter=REGEX.\n";

std::string size_name(std::uint64_t bytes) {
  return bytes < (1 << 20) ? std::to_string(bytes >> 10) + " KiB"
                           : std::to_string(bytes >> 20) + " MiB";
}

Settings take_settings(std::vector<std::string>& arguments) {
  Settings settings;
  if (const char* folder = std::getenv("THALIA_BENCH_DIR")) settings.disk = folder;
  std::vector<std::string> left;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw std::invalid_argument(option + ": a value is missing");
      return arguments[++i];
    };
    if (option == "--smoke") {
      settings.smoke = true;
      settings.pairs = 1;
    } else if (option == "--pairs") {
      settings.pairs = static_cast<unsigned>(number(option, value()));
    } else if (option == "--mib") {
      settings.mib = number(option, value());
    } else if (option == "--memory") {
      settings.memory = value();
    } else if (option == "--dir") {
      settings.disk = value();
    } else if (option == "--only") {
      settings.only = value();
    } else if (option == "--data") {
      settings.data = value();
    } else if (option == "--json") {
      settings.json = value();
    } else {
      left.push_back(option);
    }
  }
  arguments = std::move(left);
  return settings;
}

}  // namespace thalia::bench
