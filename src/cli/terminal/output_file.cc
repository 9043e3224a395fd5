// A regular file is written beside its place and put there whole (thalia/output_file.h); a device
// or a pipe cannot be replaced and is written to directly.
#include "cli/terminal/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cli/terminal/stop_on_signal.h"
#include "thalia/error.h"
#include "thalia/output_file.h"

namespace thalia::cli {
namespace {

bool is_device(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// Opening a pipe waits until somebody opens it for reading, which may be never.
int open_device(const std::filesystem::path& path) {
  const LetSignalsEnd waiting;
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

void print_into_device(const std::filesystem::path& path,
                       const std::function<void(Output& out)>& print) {
  const int descriptor = open_device(path);
  if (descriptor < 0) throw IoError("open", errno, {.path = path.string()});
  Output out(descriptor, path.string());
  try {
    print(out);
    out.flush();
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  if (::close(descriptor) != 0) throw IoError("close", errno, {.path = path.string()});
}

}  // namespace

CLI::Option* add_output(CLI::App& app, const char* value, std::string& path) {
  return offer(add_option(app, fmt::format("-o,--output {}", value), path,
                          "Write to this file, whole or not at all"),
               kFile);
}

void print_into(const std::filesystem::path& path, const Session& session,
                const std::function<void(Output& out)>& print) {
  if (is_device(path)) return print_into_device(path, print);
  OutputFile file(path, {}, session.stop);
  Output out([&](std::string_view text) {
    file.write({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  });
  print(out);
  out.flush();
  file.commit();
}

}  // namespace thalia::cli
