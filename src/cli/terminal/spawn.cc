#include "cli/terminal/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <utility>

#include "thalia/error.h"

namespace thalia::cli {

pid_t spawn(std::vector<std::string> words, const ChildDescriptors& descriptors) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // These calls fail for want of memory alone, and glibc's take none but adddup2.
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  int failed = 0;
  for (const auto& [from, to] :
       {std::pair(descriptors.input, STDIN_FILENO), std::pair(descriptors.output, STDOUT_FILENO),
        std::pair(descriptors.errors, STDERR_FILENO)}) {
    if (failed == 0 && from >= 0) failed = ::posix_spawn_file_actions_adddup2(&actions, from, to);
  }
  sigset_t none;
  sigset_t usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes,
                             static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  pid_t child = 0;
  if (failed == 0)
    failed = ::posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw IoError("posix_spawn", failed, {.path = words.front()});
  return child;
}

}  // namespace thalia::cli
