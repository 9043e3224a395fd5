// The program through which the user reads what is longer than the screen.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace thalia::cli {

/// Runs $THALIA_PAGER, else $PAGER, else less, with a pipe as its input. While it runs, SIGINT is
/// its affair. Externally synchronised.
class Pager {
 public:
  Pager() = default;
  ~Pager() { finish(); }
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// @return false where the user wants none, which an empty variable or "cat" says, or where it
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

}  // namespace thalia::cli
