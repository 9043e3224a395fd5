// Bytes are collected in a buffer and sent with plain write() calls, so that an error can be told
// from a reader that has gone. Text is made safe here, on the only way out.
#include "cli/terminal/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/terminal/escape.h"
#include "cli/terminal/spawn.h"
#include "cli/terminal/stop_on_signal.h"
#include "thalia/error.h"

namespace thalia::cli {

// A command of plain words is started directly, so that one which is not there is noticed before
// anything is written to it; others, with quotes or variables, are left to the shell. The program
// ends after its pager, whatever happens in between: two of them would fight over the terminal.

namespace {

// Empty if the user wants none.
std::vector<std::string> pager_words() {
  for (const char* name : {"THALIA_PAGER", "PAGER"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string command = value;
    if (command == "cat") return {};
    if (command.find_first_of("|&;<>()$`\\\"'*?[#~=%{") != std::string::npos)
      return {"sh", "-c", command};
    std::vector<std::string> words;
    for (std::size_t at = 0; (at = command.find_first_not_of(" \t", at)) < command.size();) {
      const std::size_t end = std::min(command.find_first_of(" \t", at), command.size());
      words.push_back(command.substr(at, end - at));
      at = end;
    }
    return words;
  }
  // Leaves at once what fits, shows colours, and leaves the text on the screen.
  return {"less", "-FRX"};
}

// 0 if it cannot be started.
pid_t spawn_pager(const std::vector<std::string>& words, int input) {
  try {
    return spawn(words, {.input = input});
  } catch (const IoError&) {
    return 0;
  }
}

void wait_for(pid_t child) {
  try {
    // SIGTERM and SIGHUP end this wait.
    const LetSignalsEnd waiting;
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  } catch (const CancelledError&) {
    // One of them has come already.
  }
}

// Without codes of colours.
std::size_t shown_width(std::string_view line) {
  std::size_t width = 0;
  while (!line.empty()) {
    const std::size_t code = std::min(line.find('\x1b'), line.size());
    width += display_width(line.substr(0, code));
    line.remove_prefix(code);
    line.remove_prefix(line.empty() ? 0 : std::min(line.find('m') + 1, line.size()));
  }
  return width;
}

}  // namespace

bool Pager::start() {
  const std::vector<std::string> words = pager_words();
  int ends[2];
  if (words.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return false;
  child_ = spawn_pager(words, ends[0]);
  ::close(ends[0]);
  if (child_ == 0) {
    ::close(ends[1]);
    return false;
  }
  input_ = ends[1];
  leave_interrupts_to_pager(true);
  return true;
}

void Pager::finish() noexcept {
  if (child_ == 0) return;
  ::close(input_);
  wait_for(child_);
  child_ = 0;
  leave_interrupts_to_pager(false);
}

bool is_taller_than_screen(std::string_view text, int terminal) {
  winsize screen{};
  if (::ioctl(terminal, TIOCGWINSZ, &screen) != 0 || screen.ws_row == 0 || screen.ws_col == 0)
    return false;
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t width = shown_width(text.substr(begin, end - begin));
    rows += std::max<std::size_t>((width + screen.ws_col - 1) / screen.ws_col, 1);
    begin = end + 1;
  }
  // The last row is for what the shell shows next.
  return rows >= screen.ws_row;
}

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

ssize_t send_once(int descriptor, const char* data, std::size_t length) {
  // The reader of a pipe may never come back; a signal must end that wait.
  const LetSignalsEnd waiting;
  return ::write(descriptor, data, length);
}

}  // namespace

Output::Output(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {}

void Output::write(std::string_view text) {
  // White space of a file's own JSON text, which would let a line write over itself.
  if (text.find('\r') != std::string_view::npos && is_terminal()) {
    std::string spaced(text);
    std::ranges::replace(spaced, '\r', ' ');
    return write(std::string_view(spaced));
  }
  if (has_unsafe(text)) return put(escape_unsafe(text));
  put(text);
}

void Output::write(Style style, std::string_view text) {
  if (!has_color_) has_color_ = !sink_ && has_color(descriptor_);
  *has_color_ ? put(in_color(style, escape_unsafe(text))) : write(text);
}

void Output::write(ByteSpan bytes) {
  put(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Output::put(std::string_view text) {
  if (closed_) return;
  if (buffer_.size() + text.size() > kBufferBytes) {
    // No screen has room for that.
    if (std::exchange(may_page_, false)) pager_.start();
    flush();
  }
  // What fills the buffer by itself is not copied into it.
  if (text.size() >= kBufferBytes) {
    send(text.data(), text.size());
  } else {
    buffer_.append(text);
  }
}

void Output::flush() {
  if (std::exchange(may_page_, false) && is_taller_than_screen(buffer_, descriptor_))
    pager_.start();
  send(buffer_.data(), buffer_.size());
  buffer_.clear();
}

bool Output::is_terminal() const noexcept {
  return ::isatty(descriptor_) == 1;
}

void Output::send(const char* data, std::size_t length) {
  if (sink_) return sink_({data, length});
  while (length > 0 && !closed_) {
    const int reader = pager_.is_running() ? pager_.input() : descriptor_;
    const ssize_t written = send_once(reader, data, length);
    if (written >= 0) {
      data += written;
      length -= static_cast<std::size_t>(written);
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      const int reason = errno;
      // What is left would fail again in the flush at the end.
      buffer_.clear();
      throw IoError("write", reason, {.path = name_});
    }
  }
}

}  // namespace thalia::cli
