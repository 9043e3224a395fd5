// Reports say that it is worth to look, and nothing more: what is there, the look tells. So a
// report that is lost costs time alone, and the caller looks now and then without one. A file
// system that another machine writes to, as NFS, reports nothing of that.
#include "io/folder/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/stop_question.h"
#include "io/output/temporary_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {
namespace {

constexpr std::uint32_t kReported = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;
// Room for some reports with names of the greatest length.
constexpr std::size_t kReportBytes = 16 * (sizeof(inotify_event) + NAME_MAX + 1);

}  // namespace

FolderWatch::FolderWatch(bool polling, Counts counts)
    : counts_(std::move(counts)), calls_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!calls_) throw_errno("eventfd", {});
  if (!polling) reports_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

void FolderWatch::add(const std::filesystem::path& folder) {
  if (!reports_) return;
  for (const auto& [number, path] : folders_)
    if (path == folder) return;
  const int number = ::inotify_add_watch(reports_.get(), folder.c_str(), kReported);
  if (number >= 0) {
    folders_[number] = folder;
  } else if (errno != ENOENT && errno != ENOTDIR) {
    // Out of watches, or denied.
    reports_.reset();
    folders_.clear();
  }
}

void FolderWatch::wake() noexcept {
  const std::uint64_t one = 1;
  // It fails where the counter is full: then somebody is woken anyhow.
  static_cast<void>(!::write(calls_.get(), &one, sizeof one));
}

bool FolderWatch::take_call() {
  std::uint64_t calls = 0;
  return ::read(calls_.get(), &calls, sizeof calls) == static_cast<ssize_t>(sizeof calls);
}

bool FolderWatch::take_reports() {
  bool counts = false;
  alignas(inotify_event) std::array<char, kReportBytes> buffer;
  while (reports_) {
    const ssize_t length = ::read(reports_.get(), buffer.data(), buffer.size());
    if (length <= 0) break;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(length);) {
      inotify_event report;
      std::memcpy(&report, buffer.data() + at, sizeof report);
      const char* const name = buffer.data() + at + sizeof report;
      at += sizeof report + report.len;
      // The folder went: it may come again.
      if ((report.mask & IN_IGNORED) != 0) folders_.erase(report.wd);
      // A save that is not done has a temporary name.
      const std::string_view named(name, ::strnlen(name, report.len));
      counts = counts || (!temporary_process(named) && (!counts_ || counts_(named)));
    }
  }
  return counts;
}

Woken FolderWatch::wait(std::chrono::milliseconds patience, const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongest{INT_MAX / 2};
  const Clock::time_point end = Clock::now() + std::min(patience, kLongest);
  // A stop ends the wait as a call does, and this one alone: its call does not outlive it.
  bool called = take_call();
  const auto forget = [&](const void*) {
    if (stop.stop_requested()) static_cast<void>(take_call());
  };
  const std::unique_ptr<FolderWatch, decltype(forget)> after(this, forget);
  const std::stop_callback on_stop(stop, [this] { wake(); });
  while (true) {
    stop_if_wanted(stop);
    if (called) return Woken::called;
    if (take_reports()) return Woken::changed;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return Woken::late;
    std::array<pollfd, 2> awaited{{{calls_.get(), POLLIN, 0}, {reports_.get(), POLLIN, 0}}};
    const int ready = ::poll(awaited.data(), reports_ ? 2 : 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) throw_errno("poll", {});
    called = take_call();
  }
}

}  // namespace thalia::io
