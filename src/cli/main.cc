// thalia: dispatch, errors, exit statuses. Commands throw, and this file alone turns what they
// throw into a line on standard error and a status. The order in run() matters: descriptors first,
// before anything is opened; signals before any thread; StopOnSignal inside the try block, so that
// the process ends by a signal only when everything else has been tidied up.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "base/suggestion.h"
#include "cli/command/changed_file.h"
#include "cli/command/command.h"
#include "cli/print/error_json.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/stop_on_signal.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

// If the process is started without one of the three standard descriptors, the next file that is
// opened gets its number, and what is printed would be written into that file. /dev/null, opened
// the wrong way round, takes the number and refuses every byte.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened =
          ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

// Asked of the words, and not of the parser: an error may come before the parser, or be its own.
bool wants_json(const std::vector<std::string>& arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

// For unknown options.
std::string option_hint(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(0, word.find('='));
    Suggestion suggestion(name);
    for (const CLI::Option* option : app.get_options())
      for (const std::string& known : option->get_lnames()) suggestion.offer("--" + known);
    if (!suggestion.best().empty()) return suggestion.text();
  }
  return {};
}

// Most commands take it: anybody who gives it to another one has to know what else there is.
void refuse_json(const Command& command, const CLI::App& app) {
  const bool has_format = app.get_option_no_throw("--format") != nullptr;
  throw UsageError(
      ErrorCode::bad_argument,
      fmt::format("{} does not take it: {}", command.name,
                  has_format ? "--format json prints JSON" : "it has no result to print"),
      {.field = "--json"});
}

int run_command(const Command& command, std::vector<std::string> arguments, Output& out,
                const std::stop_token& stop) {
  const Declared declared = declare(command);
  if ((command.takes & kJson) == 0 && wants_json(arguments)) refuse_json(command, *declared.app);
  // CLI11 expects the arguments in reverse order.
  std::reverse(arguments.begin(), arguments.end());
  try {
    declared.app->parse(arguments);
    if ((command.takes & kPages) != 0 && !declared.common->no_pager) out.page();
    const Session session{.out = out, .stop = stop, .common = *declared.common};
    refuse_input_as_output(*declared.app, session);
    return declared.run(session);
  } catch (const CLI::CallForHelp&) {
    if (!declared.common->no_pager) out.page();
    print_help(out, declared.app->help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    throw UsageError(ErrorCode::bad_argument,
                     fmt::format("{}: {}{} (see 'thalia help {}')", command.name, error.what(),
                                 option_hint(*declared.app), command.name));
  }
}

// --color and --no-pager come after the command or before it.
void put_behind_command(std::vector<std::string>& arguments) {
  const auto is_global = [](const std::string& word) {
    return word == "--color" || word.starts_with("--color=") || word == "--no-pager";
  };
  auto command = arguments.begin();
  while (command != arguments.end() && is_global(*command)) {
    if (*command == "--color" && command + 1 != arguments.end()) ++command;
    ++command;
  }
  if (command != arguments.end()) std::rotate(arguments.begin(), command, command + 1);
}

int dispatch(std::vector<std::string> arguments, Output& out, const std::stop_token& stop) {
  put_behind_command(arguments);
  if (arguments.empty()) {
    Output err(STDERR_FILENO, "standard error");
    err.write(overview());
    err.flush();
    return kWrongUsage;
  }
  std::string name = take_command_name(arguments);
  if (name == "__complete") return complete_names(arguments, {.out = out, .stop = stop});
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  return run_command(require_command(name), std::move(arguments), out, stop);
}

// Before an error is reported, and before the process ends by a signal.
struct LeavePager {
  Output& out;
  ~LeavePager() { out.leave_pager(); }
};

int run(std::vector<std::string> arguments) {
  occupy_standard_descriptors();
  // A reader that goes away shows as EPIPE instead, which Output understands.
  std::signal(SIGPIPE, SIG_IGN);
  const bool as_json = wants_json(arguments);
  report_changed_files(as_json);
  // What it still holds when an error comes is dropped.
  Output out(STDOUT_FILENO);
  try {
    // For every command. Its destructor ends the process by the signal that came, if one came.
    const StopOnSignal signals;
    const LeavePager last{out};
    const int status = dispatch(std::move(arguments), out, signals.token());
    out.flush();
    return status;
  } catch (const UsageError& error) {
    return complain_of(error, as_json, kWrongUsage);
  } catch (const std::exception& error) {
    return complain_of(error, as_json, kUnreadable);
  }
}

}  // namespace
}  // namespace thalia::cli

int main(int argc, char** argv) {
  return thalia::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
