// witness_files PART FOLDER: one program for all parts, as each would link all of the library.
#include <exception>
#include <iostream>
#include <string_view>

#include "parts.h"

namespace {

struct Part {
  std::string_view name;
  void (*run)(const std::filesystem::path& folder);
};
constexpr Part kParts[] = {
    {"chain", witness::chain::run},       {"chunks", witness::chunks::run},
    {"examples", witness::examples::run}, {"low_rank", witness::quantized::run_low_rank},
    {"mckp", witness::mckp::run},         {"quantized", witness::quantized::run},
    {"samples", witness::samples::run},   {"state", witness::state::run},
    {"verdicts", witness::verdicts::run},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Part& part : kParts) {
    if (argc != 3 || argv[1] != part.name) continue;
    try {
      part.run(argv[2]);
      return 0;
    } catch (const std::exception& error) {
      std::cerr << "witness_files " << part.name << ": " << error.what() << '\n';
      return 1;
    }
  }
  std::cerr << "usage: witness_files PART FOLDER\n";
  return 2;
}
