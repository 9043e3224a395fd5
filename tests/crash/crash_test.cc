// Crashes of every operation, in every mode of the model (disk.h):
//
//   crash_test RECORDER [--states N] [--least M] [--seed S] [--operation NAME] [--mode MODE]
//   [--calls]
//   crash_test RECORDER --store ...    of the operations of the store
//   crash_test RECORDER --broken       savers that are wrong: each must be found out
//
// N is of an operation and a mode, M of all: fewer are a failure. The last lines are a table of
// what was found; the exit status is 0 only if nothing was violated.
// docs/contribute/durability.md tells what the states are.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crash/child.h"
#include "crash/content.h"
#include "crash/trial.h"
#include "support/sanitizers.h"

using namespace thalia::crash;

namespace {

constexpr int kSkipped = 77;

struct Options {
  std::filesystem::path recorder;
  std::size_t states = 130;
  std::size_t least = 0;
  std::uint64_t seed = 1;
  std::string operation;
  std::string mode;
  Group group = Group::files;
  bool calls = false;
};

struct Row {
  const Operation* operation;
  std::unique_ptr<Trial> trial;
  ModeResult results[std::size(kModes)];
};

// The states of one operation and mode are one piece of work.
void try_all(std::vector<Row>& rows, const Options& options) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < rows.size() * std::size(kModes);) {
      Row& row = rows[i / std::size(kModes)];
      const std::size_t mode = i % std::size(kModes);
      if (!options.mode.empty() && mode_name(kModes[mode]) != options.mode) continue;
      row.results[mode] = row.trial->run(kModes[mode], options.states, options.seed + i);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 2; ++i) threads.emplace_back(work);
}

std::string summary(const std::map<std::string, std::size_t>& found) {
  std::string text;
  for (const auto& [name, count] : found)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

// A row for each operation: states by mode, and what they held.
struct Sum {
  std::size_t states = 0;
  std::size_t violations = 0;
};
Sum print(const std::vector<Row>& rows, std::uint64_t seed) {
  auto [states, violations] = Sum{};
  fmt::print("| operation | calls |");
  for (const Mode mode : kModes) fmt::print(" {} |", mode_name(mode));
  fmt::print(" violations | found |\n|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : rows) {
    std::map<std::string, std::size_t> found;
    std::size_t violated = 0;
    fmt::print("| {} | {} |", row.operation->name, row.trial->calls());
    for (const ModeResult& result : row.results) {
      fmt::print(" {} |", result.states);
      for (const auto& [name, count] : result.found) found[name] += count;
      violated += result.violation_count;
      states += result.states;
    }
    fmt::print(" {} | {} |\n", violated, summary(found));
    violations += violated;
  }
  for (const Row& row : rows)
    for (const ModeResult& result : row.results)
      for (const std::string& violation : result.violations) fmt::print("{}\n", violation);
  fmt::print("{} states from seed {}, {} files that recover() repaired, {} violations\n", states,
             seed, recoveries(), violations);
  return {states, violations};
}

int run(const Options& options) {
  std::vector<Row> rows;
  for (const Operation* operation : operations(options.group)) {
    if (!options.operation.empty() && options.operation != operation->name) continue;
    rows.push_back({operation, std::make_unique<Trial>(*operation, options.recorder), {}});
    if (options.calls) fmt::print("{}:\n{}", operation->name, rows.back().trial->description());
  }
  use_memory(true);
  try_all(rows, options);
  const Sum sum = print(rows, options.seed);
  if (options.group != Group::broken)
    return sum.violations == 0 && sum.states >= options.least ? 0 : 1;
  int missed = 0;
  for (const Row& row : rows) {
    std::size_t found = 0;
    for (const ModeResult& result : row.results) found += result.violation_count;
    if (found > 0) continue;
    fmt::print("NOT FOUND OUT: {}\n", row.operation->name);
    ++missed;
  }
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 4 && std::strcmp(arguments[1], "--perform") == 0) {
      ::unsetenv("LD_PRELOAD");
      perform(operation_named(arguments[2]), arguments[3]);
      return 0;
    }
    if (thalia::test::kSanitized) {
      std::puts("skipped: a sanitizer's library has to be loaded before the recorder");
      return kSkipped;
    }
    Options options;
    for (int i = 1; i < count; ++i) {
      const std::string_view word = arguments[i];
      const auto value = [&] { return ++i < count ? arguments[i] : ""; };
      if (word == "--states") {
        options.states = std::strtoull(value(), nullptr, 10);
      } else if (word == "--least") {
        options.least = std::strtoull(value(), nullptr, 10);
      } else if (word == "--seed") {
        options.seed = std::strtoull(value(), nullptr, 10);
      } else if (word == "--operation") {
        options.operation = value();
      } else if (word == "--mode") {
        options.mode = value();
      } else if (word == "--broken") {
        options.group = Group::broken;
      } else if (word == "--store") {
        options.group = Group::store;
      } else if (word == "--calls") {
        options.calls = true;
      } else {
        options.recorder = word;
      }
    }
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
