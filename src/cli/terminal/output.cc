// Bytes are collected in a buffer and sent with plain write() calls, so that an error can be told
// from a reader that has gone. Text is made safe here, on the only way out.
#include "cli/terminal/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/terminal/escape.h"
#include "cli/terminal/stop_on_signal.h"
#include "thalia/error.h"

namespace thalia::cli {
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
