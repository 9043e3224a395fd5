// Another program, started as a child: no shell takes part, so that no name can be a command.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace thalia::cli {

/// What the child has as its standard descriptors; -1: what this process has.
struct ChildDescriptors {
  int input = -1;
  int output = -1;
  int errors = -1;
};

/// Starts words[0], which is looked for in PATH. It gets signals as a program expects them,
/// whatever this one does with them (StopOnSignal holds some back, SIGPIPE is ignored). Who calls
/// waits for it. @throws IoError naming it, with ENOENT if it is nowhere.
pid_t spawn(std::vector<std::string> words, const ChildDescriptors& descriptors);

}  // namespace thalia::cli
