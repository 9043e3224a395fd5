#include "demo/process.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <system_error>

#include "demo/print.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

std::string as_typed(const fs::path& program) {
  const std::string path = shorter_path(program).string();
  return path.find('/') == std::string::npos ? "./" + path : path;
}

}  // namespace

double run_command(const std::vector<std::string>& words) {
  std::string line;
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    line += " " + shell_word(word);
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  std::printf("\n  $%s\n", line.c_str());
  std::fflush(stdout);

  const Stopwatch watch;
  pid_t child = 0;
  const int failure =
      ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (failure != 0) {
    throw StepFailed(words[0] + ": cannot be started: " + std::generic_category().message(failure));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) == -1) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  if (WIFSIGNALED(status)) {
    throw StepFailed(words[0] + " was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    throw StepFailed(words[0] + " " + words[1] + " ended with status " +
                     std::to_string(WEXITSTATUS(status)));
  }
  return watch.seconds();
}

fs::path shorter_path(const fs::path& path) {
  const fs::path relative = fs::proximate(path);
  return relative.native().size() < path.native().size() ? relative : path;
}

std::string this_program() {
  return as_typed(fs::read_symlink("/proc/self/exe"));
}

std::string thalia_program(const fs::path& wanted) {
  if (!wanted.empty()) return wanted.string();
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path() / "../..";
  const fs::path beside = (build / "src/cli/thalia").lexically_normal();
  return fs::exists(beside) ? as_typed(beside) : "thalia";
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void prepare_folder(const fs::path& folder, std::uint64_t bytes) {
  fs::create_directories(folder);
  const std::uint64_t free = fs::space(folder).available;
  if (free < bytes) {
    throw std::runtime_error(folder.string() + ": " + bytes_text(static_cast<double>(free)) +
                             " free, this takes about " + bytes_text(static_cast<double>(bytes)));
  }
}

}  // namespace demo
