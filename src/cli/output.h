// Standard output as the commands use it: buffered, and honest about what happened to the bytes.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "thalia/bytes.h"

namespace thalia::cli {

/// Writes to a file descriptor that it does not own. A reader that goes away (`| head`) is no
/// error: from then on everything is dropped, and closed() tells a command that it may stop.
/// Externally synchronised.
class Output {
 public:
  explicit Output(int descriptor, std::string name = "standard output");
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Text or JSON in whole characters: those that would move the cursor or reorder a line on a
  /// terminal go out as \u0085, whoever wrote them, so that no command can forget to.
  /// @throws IoError naming the output where it cannot take the bytes (a full disk).
  void write(std::string_view text);
  /// Bytes as they are.
  void write(ByteSpan bytes);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
  }
  /// Must be called before the process ends: the destructor drops what is buffered.
  void flush();

  bool closed() const noexcept { return closed_; }
  bool is_terminal() const noexcept;

 private:
  void put(std::string_view text);
  void send(const char* data, std::size_t length);

  int descriptor_;
  std::string name_;
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace thalia::cli
