// What every command gets beside its own arguments: where it prints, whom it stops for, and how it
// reads.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/terminal/output.h"
#include "thalia/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace thalia::cli {

/// What a command reads, which decides about the options of ReadArguments that it takes.
enum class Reads {
  nothing,  ///< that is named on the command line
  files,
  chains,  ///< files, and of a delta what it is based on
};

/// Options that all commands that read files share. declare(Command) adds them, Session::options()
/// puts them in force.
struct ReadArguments {
  bool safe = false;
  std::vector<std::string> search;
  bool absolute_bases = false;

  void declare(CLI::App& app, Reads reads);
};

/// Options of the library that lead to a stop token, by themselves or in a part of theirs.
template <typename Options>
concept Stoppable = requires(Options options) {
  options.work.cancel;
}
|| requires(Options options) {
  options.cancel;
}
|| requires(Options options) {
  options.read.work.cancel;
}
|| requires(Options options) {
  options.save.work.cancel;
};

struct Session {
  Output& out;
  std::stop_token stop;  ///< requested by SIGINT, SIGTERM and SIGHUP
  ReadArguments reading{};

  /// Options of a call of the library: its defaults, that it ends when a signal comes, and what all
  /// commands are told of reading. The only place where the program makes some, so that none
  /// forgets a part; those that cannot be stopped do not compile.
  template <Stoppable Options>
  Options options() const {
    Options made;
    fill(made);
    return made;
  }

 private:
  template <typename Options>
  void fill(Options& made) const {
    if constexpr (requires { made.cancel; }) made.cancel = stop;
    if constexpr (requires { made.work.cancel; }) made.work.cancel = stop;
    if constexpr (requires { made.access; }) {
      if (reading.safe) made.access = Access::copied;
    }
    if constexpr (requires { made.search; })
      made.search.assign(reading.search.begin(), reading.search.end());
    if constexpr (requires { made.bases; }) made.bases.absolute = reading.absolute_bases;
    if constexpr (requires { made.read; }) fill(made.read);
    if constexpr (requires { made.save; }) fill(made.save);
  }
};

}  // namespace thalia::cli
