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

/// Which of the options in CommonArguments a command takes: a sum of these.
enum Takes : unsigned {
  kNothing = 0,
  kFiles = 1,            ///< it reads files that are named on the command line
  kChains = 2 | kFiles,  ///< and of a delta what it is based on
  kThreads = 4,
  kWait = 8,  ///< it changes a file in place
  kJson = 16,
  kOutput = 32,               ///< it writes a file that is named on the command line
  kStamp = 64,                ///< what it writes says when, and has an identity
  kPages = 128,               ///< what it prints may be long, and is to be read
  kAnyFormat = 256 | kFiles,  ///< the files may be of any format
};

/// Options that many commands share. declare(Command) adds them; Session::options() applies them.
struct CommonArguments {
  bool safe = false;
  std::vector<std::string> search;
  bool absolute_bases = false;
  bool old = false;
  unsigned threads = 0;
  bool wait = false;
  bool json = false;
  bool no_pager = false;
  bool reproducible = false;
  bool replace = true;  ///< files that are there; false of a command that wants --force for that

  void declare(CLI::App& app, unsigned takes);
};

/// Options of the library that have a stop token, directly or in one of their members.
template <typename Options>
concept Stoppable = requires(Options options) {
  options.work.cancel;
}
|| requires(Options options) {
  options.read.work.cancel;
}
|| requires(Options options) {
  options.chain.read.work.cancel;
}
|| requires(Options options) {
  options.save.work.cancel;
}
|| requires(Options options) {
  options.load.read.work.cancel;
}
|| requires(Options options) {
  options.change.work.cancel;
}
|| requires(Options options) {
  options.cancel;
};

struct Session {
  Output& out;
  std::stop_token stop;  ///< requested by SIGINT, SIGTERM and SIGHUP
  CommonArguments common{};

  /// Options for a call of the library: its defaults, the stop token, and what all commands are
  /// told alike. The program makes options only here, so that none lacks a part; options that
  /// cannot be stopped do not compile.
  template <Stoppable Options>
  Options options() const {
    Options made;
    fill(made);
    return made;
  }

  /// How files are read: with --safe nothing of them is mapped.
  Access access() const noexcept { return common.safe ? Access::copied : Access::mapped; }

 private:
  template <typename Options>
  void fill(Options& made) const {
    if constexpr (requires { made.cancel; }) made.cancel = stop;
    if constexpr (requires { made.work.cancel; }) made.work.cancel = stop;
    if constexpr (requires { made.work.threads; }) made.work.threads = common.threads;
    if constexpr (requires { made.output; }) {
      made.output.replace = common.replace;
      made.output.link = OutputLink::followed;
      made.output.reproducible = common.reproducible;
    }
    if constexpr (requires { made.wait; }) made.wait = common.wait;
    if constexpr (requires { made.input.access; }) {
      made.input.access = access();
      made.input.legacy = common.old;
    }
    if constexpr (requires { made.access; }) made.access = access();
    if constexpr (requires { made.search; })
      made.search.assign(common.search.begin(), common.search.end());
    if constexpr (requires { made.bases; }) made.bases.absolute = common.absolute_bases;
    if constexpr (requires { made.read; }) fill(made.read);
    if constexpr (requires { made.chain; }) fill(made.chain);
    if constexpr (requires { made.save; }) fill(made.save);
    if constexpr (requires { made.load; }) fill(made.load);
    if constexpr (requires { made.change; }) fill(made.change);
  }
};

}  // namespace thalia::cli
