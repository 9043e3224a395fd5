// Standard output as the commands use it: buffered, and honest about what happened to the bytes.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/terminal/style.h"
#include "thalia/types.h"

namespace thalia::cli {

// The program through which the user reads what is longer than the screen.

/// Runs $THALIA_PAGER, else $PAGER, else less, with a pipe as its input. While it runs, SIGINT is
/// its affair. Externally synchronised.
class Pager {
 public:
  Pager() = default;
  ~Pager() { finish(); }
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// @return false if the user wants none, which an empty variable or "cat" says, or if it
  /// cannot be started.
  bool start();
  bool is_running() const noexcept { return child_ != 0; }
  /// The descriptor to write to.
  int input() const noexcept { return input_; }
  /// Ends its input, and waits until the user leaves it.
  void finish() noexcept;

 private:
  int input_ = -1;
  pid_t child_ = 0;
};

/// Whether the text, with colours of in_color(), has more lines than the screen of that terminal.
bool is_taller_than_screen(std::string_view text, int terminal);

/// Writes to a file descriptor that it does not own. A reader that goes away (`| head`) is not an
/// error: from then on everything is dropped, and closed() tells a command that it may stop. A
/// signal that comes while a write waits for the reader ends the process, since nothing has to be
/// tidied up then. Externally synchronised.
class Output {
 public:
  /// Takes what is printed, in large pieces.
  using Sink = std::function<void(std::string_view text)>;

  explicit Output(int descriptor, std::string name = "standard output");
  explicit Output(Sink sink) : sink_(std::move(sink)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Text or JSON in whole characters. Characters that would move the cursor or reorder a line on a
  /// terminal are written as \u0085 and the like, no matter who wrote them, so that no command can
  /// forget to do it. A carriage return, which JSON may be laid out with, is a space on a terminal.
  /// @throws IoError naming the output if it cannot take the bytes (a full disk); what the sink
  /// throws.
  void write(std::string_view text);
  /// The same in a colour, if the terminal has some. Text of one line.
  void write(Style style, std::string_view text);
  /// Bytes as they are.
  void write(ByteSpan bytes);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
  }
  /// One fact of a description.
  void line(std::string_view label, std::string_view text) { print("{:<15}{}\n", label, text); }
  void line(Style style, std::string_view label, std::string_view text) {
    write(style, label);
    print("{:{}}{}\n", "", 15 - label.size(), text);
  }
  /// From here on, what is longer than the screen of the terminal goes through the user's pager. No
  /// effect if it is no terminal.
  void page() noexcept { may_page_ = is_terminal(); }
  /// Must be called before the process ends: the destructor drops what is buffered.
  void flush();
  /// Waits until the user leaves the pager, if there is one. What is buffered is dropped.
  void leave_pager() noexcept { pager_.finish(); }

  bool closed() const noexcept { return closed_; }
  bool is_terminal() const noexcept;

 private:
  void put(std::string_view text);
  void send(const char* data, std::size_t length);

  Sink sink_;  ///< empty if it is the descriptor
  int descriptor_ = -1;
  std::string name_;
  std::string buffer_;
  bool closed_ = false;
  bool may_page_ = false;
  Pager pager_;
  std::optional<bool> has_color_;  ///< asked when it is first needed, as options come late
};

}  // namespace thalia::cli
