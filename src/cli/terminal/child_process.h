// Another program, run as a child: no shell takes part, so that no name can be a command.
#pragma once

#include <sys/types.h>

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace thalia::cli {

/// A child that runs, or has ended. It gets signals as a program expects them, whatever this one
/// does with them. Externally synchronised.
class ChildProcess {
 public:
  /// Which of its standard descriptors are pipes to this process; it shares the others with it.
  struct Pipes {
    bool input = false;
    bool output = false;
    bool errors = false;
  };

  /// Starts argv[0], which is looked for in PATH. @throws IoError naming it, with ENOENT where it
  /// is nowhere.
  ChildProcess(const std::vector<std::string>& argv, Pipes pipes);
  /// Closes the pipes, and waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // This process's ends of the pipes; -1 where there is none, or no longer.
  int input() const noexcept { return input_; }
  int output() const noexcept { return output_; }
  int errors() const noexcept { return errors_; }
  /// What it reads ends here.
  void close_input() noexcept;
  void close_output() noexcept;
  void close_errors() noexcept;

  void send_signal(int number) noexcept;
  /// Waits for its end: what it exited with, or 128 and the signal that ended it, as shells have
  /// it. @throws IoError.
  int wait();

 private:
  void close_all() noexcept;

  std::string name_;
  pid_t id_ = -1;  ///< -1: it was waited for
  int input_ = -1;
  int output_ = -1;
  int errors_ = -1;
  int status_ = 0;
};

struct ChildResult {
  int status = 0;  ///< as ChildProcess::wait()
  std::string out;
  std::string errors;
};

/// Runs a program over `input` to its end. One that does not want all of the input is no error.
/// @throws IoError as ChildProcess, or naming the program and the call that failed; CancelledError,
/// with the child ended.
ChildResult run_child(const std::vector<std::string>& argv, std::string_view input,
                      const std::stop_token& stop);

}  // namespace thalia::cli
