// A file that shrinks or fails while it is mapped makes its reader receive SIGBUS, which cannot be
// turned into an exception. The handler names the file and ends the process; there is nothing to go
// on with.
#include "cli/command/changed_file.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "cli/command/command.h"
#include "cli/print/error_json.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

// Set before the handler is.
bool tells_json = false;

std::uint64_t take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The path of the file that is mapped at an address; empty if there is none. Lines of
// /proc/self/maps read "BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH".
std::string path_at(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::string_view rest = line;
    const std::uint64_t begin = take_hex(rest);
    if (!rest.starts_with('-')) continue;
    rest.remove_prefix(1);
    const std::uint64_t end = take_hex(rest);
    if (address < begin || address >= end) continue;
    const std::size_t path = rest.find('/');
    return std::string(path == std::string_view::npos ? "" : rest.substr(path));
  }
  return {};
}

// Handlers normally must not allocate or print. This one may: it is entered while mapped bytes are
// read, never from within an allocation. Several threads may fault at once; the first reports, and
// the others wait for the process to end.
void on_bus_error(int number, siginfo_t* info, void*) {
  static std::atomic<bool> is_reported = false;
  if (is_reported.exchange(true)) {
    for (;;) ::pause();
  }
  const std::string path = path_at(reinterpret_cast<std::uint64_t>(info->si_addr));
  if (path.empty()) {
    // A fault of this program's own. The instruction is repeated and faults again, now fatally.
    ::signal(number, SIG_DFL);
    return;
  }
  const Error error(ErrorCode::io,
                    "it changed while it was read, or its disk failed; --safe reads a file without "
                    "mapping it",
                    {.path = path});
  ::_exit(complain_of(error, tells_json, kUnreadable));
}

}  // namespace

void report_changed_files(bool as_json) {
  tells_json = as_json;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace thalia::cli
