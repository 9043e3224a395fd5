// All descriptors are made with O_CLOEXEC, so that the child has its three and no other: a pipe
// whose end it held by accident would never end. run_child() feeds and collects in one loop, as a
// child that nobody reads from stops reading, too.
#include "cli/terminal/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

constexpr int kLookAtStopMs = 50;

void close_end(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// A call that returns an error number.
void check_spawn(int error, const char* call, const std::string& program) {
  if (error != 0) throw IoError(call, error, {.path = program});
}

struct SpawnActions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  explicit SpawnActions(const std::string& program) {
    check_spawn(::posix_spawn_file_actions_init(&actions), "posix_spawn_file_actions_init",
                program);
    const int error = ::posix_spawnattr_init(&attributes);
    if (error != 0) ::posix_spawn_file_actions_destroy(&actions);
    check_spawn(error, "posix_spawnattr_init", program);
  }
  ~SpawnActions() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
};

// This process holds signals back (StopOnSignal) and ignores SIGPIPE; neither is the child's.
void give_usual_signals(SpawnActions& spawn, const std::string& program) {
  sigset_t none;
  sigset_t usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  check_spawn(::posix_spawnattr_setsigmask(&spawn.attributes, &none), "posix_spawnattr_setsigmask",
              program);
  check_spawn(::posix_spawnattr_setsigdefault(&spawn.attributes, &usual),
              "posix_spawnattr_setsigdefault", program);
  check_spawn(
      ::posix_spawnattr_setflags(
          &spawn.attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)),
      "posix_spawnattr_setflags", program);
}

// Reads what is there; closes the pipe at its end.
void collect(int descriptor, std::string& text, bool& ended, const std::string& program) {
  std::array<char, 1 << 16> piece;
  const ssize_t count = ::read(descriptor, piece.data(), piece.size());
  if (count < 0 && errno != EINTR) throw IoError("read from", errno, {.path = program});
  if (count > 0) text.append(piece.data(), static_cast<std::size_t>(count));
  ended = count == 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, Pipes pipes)
    : name_(argv.front()) {
  std::array<int, 3> theirs{-1, -1, -1};
  try {
    SpawnActions spawn(name_);
    const auto make_pipe = [&](bool wanted, int target, int& ours) {
      if (!wanted) return;
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) throw IoError("pipe2", errno, {.path = name_});
      const bool reads = target == STDIN_FILENO;
      theirs[target] = ends[reads ? 0 : 1];
      ours = ends[reads ? 1 : 0];
      check_spawn(::posix_spawn_file_actions_adddup2(&spawn.actions, theirs[target], target),
                  "posix_spawn_file_actions_adddup2", name_);
    };
    make_pipe(pipes.input, STDIN_FILENO, input_);
    make_pipe(pipes.output, STDOUT_FILENO, output_);
    make_pipe(pipes.errors, STDERR_FILENO, errors_);
    give_usual_signals(spawn, name_);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    check_spawn(::posix_spawnp(&id_, name_.c_str(), &spawn.actions, &spawn.attributes, words.data(),
                               environ),
                "posix_spawn", name_);
  } catch (...) {
    id_ = -1;
    for (int& descriptor : theirs) close_end(descriptor);
    close_all();
    throw;
  }
  for (int& descriptor : theirs) close_end(descriptor);
}

ChildProcess::~ChildProcess() {
  close_all();
  int status = 0;
  while (id_ != -1 && ::waitpid(id_, &status, 0) == -1 && errno == EINTR) continue;
}

void ChildProcess::close_input() noexcept {
  close_end(input_);
}
void ChildProcess::close_output() noexcept {
  close_end(output_);
}
void ChildProcess::close_errors() noexcept {
  close_end(errors_);
}
void ChildProcess::close_all() noexcept {
  close_input();
  close_output();
  close_errors();
}

void ChildProcess::send_signal(int number) noexcept {
  if (id_ != -1) ::kill(id_, number);
}

int ChildProcess::wait() {
  if (id_ == -1) return status_;
  int status = 0;
  pid_t ended = -1;
  while ((ended = ::waitpid(id_, &status, 0)) == -1 && errno == EINTR) continue;
  id_ = -1;
  if (ended == -1) throw IoError("waitpid", errno, {.path = name_});
  constexpr int kBySignal = 128;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
  return status_;
}

ChildResult run_child(const std::vector<std::string>& argv, std::string_view input,
                      const std::stop_token& stop) {
  const std::string& program = argv.front();
  ChildProcess child(argv, {.input = true, .output = true, .errors = true});
  // A write of more than the pipe has room for would wait for the child, which may wait for this.
  if (::fcntl(child.input(), F_SETFL, O_NONBLOCK) != 0)
    throw IoError("fcntl", errno, {.path = program});
  ChildResult result;
  if (input.empty()) child.close_input();
  while (child.input() >= 0 || child.output() >= 0 || child.errors() >= 0) {
    // poll() passes over descriptors of -1.
    std::array<pollfd, 3> ready{pollfd{child.input(), POLLOUT, 0},
                                pollfd{child.output(), POLLIN, 0},
                                pollfd{child.errors(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), kLookAtStopMs) < 0 && errno != EINTR)
      throw IoError("poll", errno, {.path = program});
    if (stop.stop_requested()) {
      child.send_signal(SIGTERM);
      throw CancelledError(ErrorCode::cancelled, "ended by a signal");
    }
    if (ready[0].revents != 0) {
      const ssize_t count = ::write(child.input(), input.data(), input.size());
      const bool is_closed = count < 0 && errno == EPIPE;
      if (count < 0 && !is_closed && errno != EAGAIN && errno != EINTR)
        throw IoError("write to", errno, {.path = program});
      if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
      if (is_closed || input.empty()) child.close_input();
    }
    bool ended = false;
    if (ready[1].revents != 0) {
      collect(child.output(), result.out, ended, program);
      if (ended) child.close_output();
    }
    if (ready[2].revents != 0) {
      collect(child.errors(), result.errors, ended, program);
      if (ended) child.close_errors();
    }
  }
  result.status = child.wait();
  return result;
}

}  // namespace thalia::cli
