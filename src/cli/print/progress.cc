// The bar is drawn at most ten times a second, and only from the second second on: most commands
// are done by then. The clock and the sink can be replaced, for tests.
#include "cli/print/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::size_t kShortestBar = 8;

unsigned terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// A bar that cannot be drawn is no reason to fail, so errors are ignored.
void draw_on_stderr(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

ProgressBar::ProgressBar(std::string_view label)
    : ProgressBar(label, terminal_columns(),
                  ::isatty(STDERR_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1
                      ? std::function<void(std::string_view)>(draw_on_stderr)
                      : nullptr,
                  Clock::now) {}

ProgressBar::ProgressBar(std::string_view label, unsigned columns,
                         std::function<void(std::string_view)> sink,
                         std::function<Clock::time_point()> now)
    : label_(escape(label)),
      columns_(columns),
      sink_(std::move(sink)),
      now_(std::move(now)),
      start_(now_()),
      next_(start_ + kPatience) {}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::finish() {
  if (drawn_) sink_("\r\x1b[K");
  drawn_ = false;
}

Progress ProgressBar::callback() {
  if (!sink_) return {};
  return [this](std::uint64_t done, std::uint64_t total) { update(done, total); };
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = now_();
  if (!sink_ || now < next_) return;
  next_ = now + kInterval;
  drawn_ = true;
  sink_("\r\x1b[K" + line(done, total, now - start_));
}

std::string ProgressBar::line(std::uint64_t done, std::uint64_t total,
                              Clock::duration elapsed) const {
  done = std::min(done, total);
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const std::string amounts = fmt::format("  {} of {}", human_bytes(done), human_bytes(total));
  std::string pace = fmt::format(
      "  {}/s", human_bytes(static_cast<std::uint64_t>(static_cast<double>(done) / seconds)));
  if (done > 0) pace += fmt::format("  {:.0f} s left", seconds / part - seconds);
  // One column stays free: a full line would wrap, and "\r" would no longer reach its start.
  const std::size_t room = columns_ - 1;
  const std::string percent = fmt::format("{:3.0f} %", part * 100);
  // On a narrow terminal the amounts go first, then the bar.
  for (const std::string& rest : {percent + amounts + pace, percent + pace}) {
    const std::size_t used = display_width(label_) + rest.size() + 4;
    if (used + kShortestBar > room) continue;
    const std::size_t width = std::min<std::size_t>(room - used, 40);
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(width));
    return fmt::format("{} [{}{}] {}", label_, std::string(filled, '#'),
                       std::string(width - filled, '.'), rest);
  }
  return (percent + pace).substr(0, room);
}

}  // namespace thalia::cli
