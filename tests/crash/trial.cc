#include "crash/trial.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "crash/record.h"
#include "crash/states.h"
#include "support/files.h"
#include "thalia/error.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace {

constexpr const char* kBefore = "what was there before";
constexpr const char* kLost = "refused";
constexpr std::size_t kKeptViolations = 3;
// A save and the one after it may each leave a temporary file.
constexpr std::size_t kMostTemporaries = 2;

// Notes what is found where something is promised: a file for each name.
class Learner : public Teller {
 public:
  Learner(const Operation& operation, fs::path folder, fs::path notes)
      : operation_(operation), folder_(std::move(folder)), notes_(std::move(notes)) {}
  void attempt(std::string_view) override {}
  void promise(std::string_view name) override { learn(name); }
  void settle(std::string_view name) override { learn(name); }

 private:
  void learn(std::string_view name) {
    test::write_file(notes_ / name, operation_.observe(folder_));
  }

  const Operation& operation_;
  fs::path folder_;
  fs::path notes_;
};

// Tells the recorder.
class Announcer : public Teller {
 public:
  void attempt(std::string_view name) override { call("thalia_crash_attempt", name); }
  void promise(std::string_view name) override { call("thalia_crash_promise", name); }
  void settle(std::string_view) override {}

 private:
  static void call(const char* function, std::string_view name) {
    if (void* const found = ::dlsym(RTLD_DEFAULT, function); found != nullptr)
      reinterpret_cast<void (*)(const char*)>(found)(std::string(name).c_str());
  }
};

// In a child, since an operation may change its process.
void run_in_child(const Operation& operation, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", operation.name, error.what());
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0)
    throw std::runtime_error(fmt::format("{}: ended with status {}", operation.name, status));
}

}  // namespace

Trial::Trial(const Operation& operation, const fs::path& recorder) : operation_(operation) {
  const test::TemporaryFolder place;
  const fs::path folder = place / "recorded";
  for (const char* name : {"recorded", "notes"}) fs::create_directory(place / name);
  operation.prepare(folder);
  const Tree before = read_tree(folder);
  for (const char* copy : {"observed", "learned"}) write_tree(before, place / copy);
  names_[kBefore] = operation.observe(place / "observed");
  run_in_child(operation, [&] {
    Learner learner(operation, place / "learned", place / "notes");
    operation.run(place / "learned", learner);
  });
  for (const std::string& name : test::list_folder(place / "notes"))
    names_[name] = test::read_file(place / "notes" / name);
  run_in_child(operation, [&] {
    ::setenv("LD_PRELOAD", recorder.c_str(), 1);
    ::setenv(kFolderVariable, folder.c_str(), 1);
    ::setenv(kLogVariable, (place / "log").c_str(), 1);
    ::execl("/proc/self/exe", "crash_test", "--perform", operation.name, folder.c_str(), nullptr);
    throw std::runtime_error("cannot be run");
  });
  log_ = read_log(place / "log", before);
  const std::string there = listing(read_tree(folder));
  const std::string made = listing(played_back(log_));
  if (there != made)
    throw std::runtime_error(
        fmt::format("{}: the recorder missed something. In the folder:\n{}by the log:\n{}{}",
                    operation.name, there, made, description()));
}

// What was promised last, and what was attempted since.
Trial::Allowed Trial::allowed_at(std::size_t place) const {
  Allowed allowed{{kBefore}};
  for (const Call& call : log_.calls) {
    if (call.begin >= place) break;
    if (call.kind == Kind::promise) {
      const auto from = std::find(allowed.names.begin(), allowed.names.end(), call.name);
      allowed.names.erase(allowed.names.begin(), from);
    }
    if (call.kind == Kind::attempt) allowed.names.push_back(call.name);
  }
  return allowed;
}

std::string Trial::check(const Tree& tree, std::size_t place, std::string& found) const {
  const Allowed allowed = allowed_at(place);
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
  const auto is_observed = [&](const std::string& name) { return names_.at(name) == observed; };
  if (std::any_of(allowed.names.begin(), allowed.names.end(), is_observed)) {
    found = *std::find_if(allowed.names.begin(), allowed.names.end(), is_observed);
  } else {
    for (const auto& [name, content] : names_)
      if (content == observed && operation_.may_be_lost) found = name;
    if (!found.empty()) return "";
    for (const auto& [name, content] : names_)
      if (content == observed)
        return fmt::format("'{}' is found where '{}' was promised", name, allowed.names.front());
    return fmt::format("something is believed that nobody saved: {}", observed.substr(0, 100));
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

void perform(const Operation& operation, const fs::path& folder) {
  Announcer announcer;
  operation.run(folder, announcer);
}

}  // namespace thalia::crash
