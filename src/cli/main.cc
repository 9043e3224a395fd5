// thalia: dispatch, errors, exit statuses.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/complaint.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

// A file opened by a process without one of the three standard descriptors would take its number,
// and receive what is printed. In its place stands something that refuses every byte.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened =
          ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

int run_command(const Command& command, std::vector<std::string> arguments, Output& out) {
  const Declared declared = declare(command);
  // CLI11 takes them from the back.
  std::reverse(arguments.begin(), arguments.end());
  try {
    declared.app->parse(arguments);
  } catch (const CLI::CallForHelp&) {
    out.write(declared.app->help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    return complain(
        fmt::format("{}: {} (see 'thalia help {}')", command.name, error.what(), command.name),
        kWrongUsage);
  }
  return declared.run(out);
}

int dispatch(std::vector<std::string> arguments, Output& out) {
  if (arguments.empty()) {
    Output err(STDERR_FILENO, "standard error");
    err.write(overview());
    err.flush();
    return kWrongUsage;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  return run_command(require_command(name), std::move(arguments), out);
}

int run(std::vector<std::string> arguments) {
  occupy_standard_descriptors();
  // A reader that left shows as EPIPE, which Output understands.
  std::signal(SIGPIPE, SIG_IGN);
  Output out(STDOUT_FILENO);
  try {
    const int status = dispatch(std::move(arguments), out);
    out.flush();
    return status;
  } catch (const UsageError& error) {
    // What was printed before stays; whether it can be does not matter any more.
    return complain(error.what(), kWrongUsage);
  } catch (const Error& error) {
    return complain(error.what(), kUnreadable);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kUnreadable);
  } catch (const std::exception& error) {
    return complain(error.what(), kUnreadable);
  }
}

}  // namespace
}  // namespace thalia::cli

int main(int argc, char** argv) {
  return thalia::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
