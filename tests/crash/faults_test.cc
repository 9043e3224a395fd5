// Every operation with a fault at each of its calls, one at a time, and with each of its
// allocations refused:
//
//   faults_test RECORDER REFUSER [--store] [--calls N] [--allocations N] [--operation NAME]
//   [--fault NAME]
//
// One call, or one allocation, in N is tried. What has to hold: the operation returns with
// all of its work done, or ends with an error that says what happened; what was promised is there;
// no temporary file and no descriptor is left; and work goes on.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crash/child.h"
#include "crash/content.h"
#include "crash/learned.h"
#include "crash/recorder/record.h"
#include "support/files.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::crash;
namespace fs = std::filesystem;

namespace {

constexpr int kSkipped = 77;
constexpr const char* kReport = "THALIA_CRASH_REPORT";
constexpr const char* kRefused = "THALIA_CRASH_REFUSED";

struct Fault {
  const char* name;
  std::string what;      ///< after the number of the call
  int error = 0;         ///< 0: must not be noticed
  bool goes_on = false;  ///< later calls fail too, those that tidy up among them
};

std::vector<Fault> faults() {
  return {{"EIO", fmt::format(":{}", EIO), EIO},
          {"ENOSPC", fmt::format(":{}", ENOSPC), ENOSPC},
          {"EINTR", fmt::format(":{}", EINTR)},
          {"ECANCELED", fmt::format(":{}", ECANCELED)},
          {"short", ":short"},
          {"EIO for good", fmt::format("+:{}", EIO), EIO, true},
          {"ENOSPC for good", fmt::format("+:{}", ENOSPC), ENOSPC, true}};
}

// --- In the child -------------------------------------------------------------

std::size_t open_descriptors() {
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct Ended {
  std::string how;  ///< returned, error, memory, other
  int error = 0;    ///< errno of an IoError
  long refusals = 0;
  long leaked = 0;
  std::string text;
};

// What other libraries do once in a process is done before: without memory, libcrypto would follow
// a null pointer, and simdjson end the process.
void use_libraries() {
  const test::TemporaryFolder other;
  test::save(other / "f", test::small_sample());
  content_of(other / "f");
  ::fsync(-1);  // the recorder opens its log
}

Ended perform_and_tell(const Operation& operation, const fs::path& folder) {
  use_libraries();
  const auto refuse = reinterpret_cast<void (*)(long)>(loaded_function("thalia_crash_refuse"));
  const char* const refused = std::getenv(kRefused);
  const std::size_t before = open_descriptors();
  Ended ended;
  try {
    if (refuse != nullptr && refused != nullptr) refuse(std::atol(refused));
    perform(operation, folder);
    ended.how = "returned";
  } catch (const IoError& error) {
    if (refuse != nullptr) refuse(0);
    ended = {.how = "error", .error = error.errno_value(), .text = error.what()};
  } catch (const Error& error) {
    if (refuse != nullptr) refuse(0);
    ended = {.how = "error", .text = error.what()};
  } catch (const std::bad_alloc&) {
    ended.how = "memory";
  } catch (const std::exception& error) {
    if (refuse != nullptr) refuse(0);
    ended = {.how = "other", .text = error.what()};
  }
  if (refuse != nullptr) {
    refuse(0);
    ended.refusals = reinterpret_cast<long (*)()>(loaded_function("thalia_crash_refusals"))();
  }
  ended.leaked = static_cast<long>(open_descriptors()) - static_cast<long>(before);
  return ended;
}

void tell(const Ended& ended, const char* report) {
  std::ofstream(report) << ended.how << ' ' << ended.error << ' ' << ended.refusals << ' '
                        << ended.leaked << '\n'
                        << ended.text << '\n';
}

// --- In the parent ------------------------------------------------------------

struct Run {
  std::optional<Ended> ended;  ///< nullopt: it crashed, or took too long
  CallLog log;
  std::string found;  ///< the name of what is there then
  std::string fault;  ///< what is wrong with it
};

class Driver {
 public:
  Driver(const Operation& operation, fs::path recorder, fs::path refuser)
      : operation_(operation),
        recorder_(std::move(recorder)),
        refuser_(std::move(refuser)),
        learned_(learn(operation)) {}

  Run run_with_fault(const Fault& fault, long call) const {
    Run run = start({{kFaultVariable, std::to_string(call) + fault.what}}, recorder_);
    check(run, fault.goes_on || run.log.struck == "unlink");
    if (run.fault.empty() && run.ended->how == "error" && run.ended->error != fault.error)
      run.fault = "ends with an error, which this fault should not cause";
    if (run.fault.empty() && run.ended->how == "memory") run.fault = "ends with bad_alloc";
    return run;
  }

  Run run_refused(long allocation) const {
    Run run = start({{kRefused, std::to_string(allocation)}},
                    fmt::format("{}:{}", recorder_.string(), refuser_.string()));
    check(run, false);
    // EAGAIN is what the start of a thread says.
    if (run.fault.empty() && run.ended->how == "error" && run.ended->error != ENOMEM &&
        run.ended->error != EAGAIN)
      run.fault = "ends with an error that is not about memory";
    return run;
  }

 private:
  Run start(Environment environment, const fs::path& preload) const {
    Run run;
    folder_.emplace();
    const fs::path folder = *folder_ / "f";
    write_tree(learned_.before, folder);
    const Tree before = read_tree(folder);
    environment.insert({{"LD_PRELOAD", preload},
                        {kFolderVariable, folder},
                        {kLogVariable, *folder_ / "log"},
                        {kReport, *folder_ / "report"}});
    const int status = perform_in_child(operation_, folder, environment);
    if (status == 0) {
      std::ifstream report(*folder_ / "report");
      run.ended.emplace();
      report >> run.ended->how >> run.ended->error >> run.ended->refusals >> run.ended->leaked >>
          std::ws;
      std::getline(report, run.ended->text);
    } else {
      run.fault = fmt::format("the process ended with status {}", status);
    }
    run.log = read_log(*folder_ / "log", before);
    return run;
  }

  void check(Run& run, bool may_leave_temporaries) const {
    if (!run.fault.empty()) return;
    const fs::path folder = *folder_ / "f";
    if (run.ended->how == "other") {
      run.fault = "ends with another exception than those that are documented";
      return;
    }
    if (run.ended->leaked != 0) run.fault = fmt::format("{} descriptors leak", run.ended->leaked);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".thalia-tmp" && !may_leave_temporaries)
        run.fault = "a temporary file is left: " + entry.path().filename().string();
    std::vector<std::string> allowed = allowed_at(run.log, run.log.places);
    if (run.ended->how == "returned") allowed = {learned_.last};
    try {
      const std::string observed = operation_.observe(folder);
      run.found = learned_.name_of(observed, allowed);
      if (operation_.fault != nullptr) {
        run.fault = learned_.fault_of(operation_, observed, allowed);
      } else if (std::find(allowed.begin(), allowed.end(), run.found) == allowed.end())
        run.fault = fmt::format("'{}' is found, expected '{}'", run.found, allowed.back());
      operation_.go_on(folder);
    } catch (const std::exception& error) {
      run.fault = fmt::format("does not open, or does not go on: {}", error.what());
    }
  }

  const Operation& operation_;
  fs::path recorder_;
  fs::path refuser_;
  Learned learned_;
  mutable std::optional<test::TemporaryFolder> folder_;
};

struct Tally {
  std::size_t runs = 0;
  std::size_t faults = 0;
  std::map<std::string, std::size_t> ended;

  // Returns false once the fault lies after the operation's end.
  bool add(const Run& run, bool struck, std::string_view what) {
    if (!struck && run.fault.empty()) return false;
    ++runs;
    const std::string how = run.ended ? run.ended->how : "crashed";
    const bool is_old = run.found == kBefore;
    ++ended[how == "error" || how == "memory" ? how + (is_old ? ", old" : ", new") : how];
    if (run.fault.empty()) return true;
    if (faults++ < 3)
      fmt::print("{}: {}\n  {}\n", what, run.fault, run.ended ? run.ended->text : "");
    return struck;
  }
};

struct Options {
  std::vector<fs::path> libraries;
  long calls = 1;
  long allocations = 1;
  std::string operation;
  std::string fault;
  Group group = Group::files;
};

void print(const Operation& operation, std::string_view fault, const Tally& tally) {
  fmt::print("| {} | {} | {} | {} |", operation.name, fault, tally.runs, tally.faults);
  for (const auto& [how, count] : tally.ended) fmt::print(" {} {}", count, how);
  fmt::print(" |\n");
  std::fflush(stdout);
}

Tally strike_calls(const Driver& driver, const Operation& operation, const Fault& fault,
                   long every) {
  Tally tally;
  for (long call = 1;; call += every) {
    const Run run = driver.run_with_fault(fault, call);
    const std::string what =
        fmt::format("{}, {} at call {}, {}", operation.name, fault.name, call, run.log.struck);
    if (!tally.add(run, !run.log.struck.empty(), what)) return tally;
  }
}

Tally refuse_memory(const Driver& driver, const Operation& operation, long every) {
  Tally tally;
  for (long allocation = 1;; allocation += every) {
    const Run run = driver.run_refused(allocation);
    const std::string what = fmt::format("{}, allocation {}", operation.name, allocation);
    // A process that crashed cannot say whether it was refused one: it was.
    if (!tally.add(run, !run.ended || run.ended->refusals > 0, what)) return tally;
  }
}

int run(const Options& options) {
  std::size_t runs = 0;
  std::size_t bad = 0;
  const auto wanted = [](const std::string& asked, std::string_view name) {
    return asked.empty() || asked == name;
  };
  fmt::print("| operation | fault | runs | wrong | ended |\n|---|---|---|---|---|\n");
  const auto add = [&](const Operation& operation, std::string_view fault, const Tally& tally) {
    print(operation, fault, tally);
    runs += tally.runs;
    bad += tally.faults;
  };
  for (const Operation* operation : operations(options.group)) {
    if (!wanted(options.operation, operation->name)) continue;
    use_memory(!std::string_view(operation->name).starts_with("direct"));
    const Driver driver(*operation, options.libraries.at(0), options.libraries.at(1));
    for (const Fault& fault : faults())
      if (wanted(options.fault, fault.name))
        add(*operation, fault.name, strike_calls(driver, *operation, fault, options.calls));
    if (wanted(options.fault, "memory"))
      add(*operation, "memory", refuse_memory(driver, *operation, options.allocations));
  }
  fmt::print("{} runs, {} wrong\n", runs, bad);
  return bad == 0 && runs > 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 4 && std::strcmp(arguments[1], "--perform") == 0) {
      ::unsetenv("LD_PRELOAD");
      tell(perform_and_tell(operation_named(arguments[2]), arguments[3]), std::getenv(kReport));
      return 0;
    }
    if (test::kSanitized) {
      std::puts("skipped: a sanitizer's library has to be loaded before the recorder");
      return kSkipped;
    }
    Options options;
    for (int i = 1; i < count; ++i) {
      const std::string_view word = arguments[i];
      const auto value = [&] { return ++i < count ? arguments[i] : ""; };
      if (word == "--calls") {
        options.calls = std::max(1L, std::atol(value()));
      } else if (word == "--allocations") {
        options.allocations = std::max(1L, std::atol(value()));
      } else if (word == "--store") {
        options.group = Group::store;
      } else if (word == "--operation") {
        options.operation = value();
      } else if (word == "--fault") {
        options.fault = value();
      } else {
        options.libraries.emplace_back(word);
      }
    }
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
