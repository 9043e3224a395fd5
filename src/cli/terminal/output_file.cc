// A regular file is written beside its place and put there whole (thalia/files.h); a device
// or a pipe cannot be replaced and is written to directly.
#include "cli/terminal/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "cli/terminal/stop_on_signal.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

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

// Whether the output is a file that is read for the input. If its format or its bases are not
// known, false: the command will say more.
bool is_behind(const std::filesystem::path& output, const std::string& input,
               const Session& session) {
  try {
    const std::filesystem::path written = find_safetensors_model(output);
    if (!is_file(written)) return false;  // nothing that can be replaced
    return std::ranges::any_of(
        files_read(input, session.options<OpenOptions>()),
        [&](const std::filesystem::path& file) { return is_same_file(file, written); });
  } catch (const CancelledError&) {
    throw;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

CLI::Option* add_output(CLI::App& app, const char* value, std::string& path) {
  return offer(add_option(app, fmt::format("-o,--output {}", value), path,
                          "Write to this file, whole or not at all"),
               kFile);
}

void refuse_input_as_output(const CLI::App& app, const Session& session) {
  const auto files_of = [&](bool written) {
    std::vector<std::string> files;
    for (const CLI::Option* option : app.get_options()) {
      const bool is_output = option->get_name() == "OUT" || option->check_lname("output");
      if (is_output != written || offered(*option).find(kFile) == std::string::npos) continue;
      for (const std::string& file : option->results()) files.push_back(file);
    }
    return files;
  };
  for (const std::string& output : files_of(true)) {
    for (const std::string& input : files_of(false)) {
      if (!is_same_file(input, output) && !is_behind(output, input, session)) continue;
      throw UsageError(ErrorCode::bad_argument, "the output is a file that is read",
                       {.path = output});
    }
  }
}

void print_into(const std::filesystem::path& path, const Session& session,
                const std::function<void(Output& out)>& print) {
  if (is_device(path)) return print_into_device(path, print);
  OutputFile file(path, {.replace = session.common.replace, .link = OutputLink::followed},
                  session.stop);
  Output out([&](std::string_view text) {
    file.write({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  });
  print(out);
  out.flush();
  file.commit();
}

}  // namespace thalia::cli
