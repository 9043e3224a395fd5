#include "crash/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "crash/child.h"
#include "crash/recorder/record.h"
#include "crash/states.h"
#include "support/files.h"
#include "thalia/error.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace {

constexpr const char* kLost = "refused";
constexpr const char* kBetween = "between";
constexpr std::size_t kKeptViolations = 3;
// A save and the one after it may each leave a temporary file.
constexpr std::size_t kMostTemporaries = 2;

}  // namespace

Trial::Trial(const Operation& operation, const fs::path& recorder)
    : operation_(operation), learned_(learn(operation)) {
  const test::TemporaryFolder place;
  const fs::path folder = place / "recorded";
  write_tree(learned_.before, folder);
  const Tree before = read_tree(folder);
  check_ended(operation, perform_in_child(operation, folder,
                                          {{"LD_PRELOAD", recorder},
                                           {kFolderVariable, folder},
                                           {kLogVariable, place / "log"}}));
  log_ = read_log(place / "log", before);
  const std::string there = listing(read_tree(folder));
  const std::string made = listing(played_back(log_));
  if (there != made)
    throw std::runtime_error(
        fmt::format("{}: the recorder missed something. In the folder:\n{}by the log:\n{}{}",
                    operation.name, there, made, description()));
}

std::string Trial::check(const Tree& tree, std::size_t place, std::string& found) const {
  const std::vector<std::string> allowed = allowed_at(log_, place);
  const test::TemporaryFolder scratch;
  const fs::path folder = scratch / "state";
  write_tree(tree, folder);
  std::string observed;
  try {
    observed = operation_.observe(folder);
  } catch (const Error& error) {
    found = kLost;
    if (operation_.may_be_lost) return "";
    return fmt::format("nothing valid is left: {}", error.what());
  }
  found = learned_.name_of(observed, allowed);
  if (operation_.fault != nullptr) {
    if (found.empty()) found = kBetween;
    const std::string fault = learned_.fault_of(operation_, observed, allowed);
    if (!fault.empty()) return fault;
  } else if (found.empty())
    return fmt::format("something is believed that nobody saved: {}", observed.substr(0, 100));
  if (operation_.fault == nullptr &&
      std::find(allowed.begin(), allowed.end(), found) == allowed.end()) {
    if (operation_.may_be_lost) return "";
    return fmt::format("'{}' is found where '{}' was promised", found, allowed.front());
  }
  const std::vector<std::string> names = test::list_folder(folder);
  const auto temporaries = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".thalia-tmp");
  });
  if (static_cast<std::size_t>(temporaries) > kMostTemporaries)
    return fmt::format("{} temporary files are left", temporaries);
  try {
    operation_.go_on(folder);
  } catch (const std::exception& error) {
    return fmt::format("work does not go on: {}", error.what());
  }
  return "";
}

ModeResult Trial::run(Mode mode, std::size_t wanted, std::uint64_t seed) const {
  ModeResult result;
  std::set<std::pair<std::uint64_t, std::size_t>> known;
  result.states = visit_states(log_, mode, wanted, seed, [&](const Tree& tree, std::size_t place) {
    // One folder after another promise is another state.
    const auto told = static_cast<std::size_t>(
        std::count_if(log_.calls.begin(), log_.calls.end(), [&](const Call& call) {
          return call.begin < place && (call.kind == Kind::promise || call.kind == Kind::attempt);
        }));
    if (!known.emplace(hash(tree), told).second) return false;
    std::string found;
    std::string violation;
    try {
      violation = check(tree, place, found);
    } catch (const std::exception& error) {
      violation = error.what();
    }
    ++result.found[violation.empty() ? found : "VIOLATION"];
    if (violation.empty()) return true;
    if (result.violation_count++ < kKeptViolations)
      result.violations.push_back(fmt::format("{}, {}, crash after record {}: {}\n{}",
                                              operation_.name, mode_name(mode), place, violation,
                                              listing(tree)));
    return true;
  });
  return result;
}

std::string Trial::description() const {
  constexpr const char* kNames[] = {
      "?",        "make file", "make folder", "make symlink", "link",     "rename",     "unlink",
      "truncate", "allocate",  "write",       "sync",         "sync all", "ring write", "ring sync",
      "complete", "attempt",   "promise",     "struck",       "unknown"};
  std::string text;
  for (const Call& call : log_.calls)
    text +=
        fmt::format("{:4} to {:<4} {}{} node {} {} {} offset {} length {} bytes {}\n", call.begin,
                    static_cast<std::int64_t>(call.end), kNames[static_cast<int>(call.kind)],
                    call.data_only ? " (data)" : "", static_cast<std::int64_t>(call.node),
                    call.name, call.other_name, call.offset, call.length, call.bytes.size());
  return text;
}

}  // namespace thalia::crash
