// rsvg-convert reads the picture from a file in memory, and writes and complains into two others:
// whatever it reads or leaves, neither it nor this program waits for the other, as with pipes.
#include "cli/report/picture_file.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>

#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/spawn.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

constexpr const char* kRenderer = "rsvg-convert";
constexpr std::chrono::milliseconds kLookAtChild{5};

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents = {})
      : descriptor_(::memfd_create("picture", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail("memfd_create");
    for (std::size_t done = 0; done < contents.size();) {
      const ssize_t count = ::pwrite(descriptor_, contents.data() + done, contents.size() - done,
                                     static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("pwrite");
      done += static_cast<std::size_t>(count);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  std::string contents() const {
    std::string text;
    std::string piece(1 << 16, '\0');
    while (true) {
      const ssize_t count =
          ::pread(descriptor_, piece.data(), piece.size(), static_cast<off_t>(text.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("pread");
      if (count == 0) return text;
      text.append(piece, 0, static_cast<std::size_t>(count));
    }
  }

 private:
  [[noreturn]] static void fail(const char* call) {
    throw IoError(call, errno, {.path = "a picture in memory"});
  }

  int descriptor_;
};

pid_t start_renderer(const std::string& path, const ChildDescriptors& descriptors) {
  try {
    return spawn({kRenderer, "--format=png", "--zoom=2", "--background-color=white"}, descriptors);
  } catch (const IoError& error) {
    if (error.errno_value() != ENOENT) throw;
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        fmt::format("PNG is drawn by {}, which is not there: install Debian's package "
                    "librsvg2-bin, or write a name that ends in .svg",
                    kRenderer),
        {.path = path});
  }
}

// What it exited with, or 128 and the signal that ended it, as shells have it.
int status_of(pid_t child, const std::stop_token& stop) {
  int status = 0;
  bool is_reported = false;
  for (pid_t ended = 0; ended == 0;) {
    if (stop.stop_requested() && !is_reported) is_reported = ::kill(child, SIGTERM) == 0;
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0) throw IoError("waitpid", errno, {.path = kRenderer});
    if (ended == 0) std::this_thread::sleep_for(kLookAtChild);
  }
  if (is_reported) throw CancelledError(ErrorCode::cancelled, "ended by a signal");
  constexpr int kBySignal = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
}

std::string png_of(const std::string& path, const std::string& svg, const Session& session) {
  const MemoryFile input(svg);
  const MemoryFile output;
  const MemoryFile errors;
  const int status = status_of(
      start_renderer(path, {input.descriptor(), output.descriptor(), errors.descriptor()}),
      session.stop);
  if (status == 0) return output.contents();
  std::string said = errors.contents();
  said.erase(said.find_last_not_of('\n') + 1);
  throw Error(ErrorCode::io,
              fmt::format("{} ended with status {}: {}", kRenderer, status,
                          said.empty() ? "it said nothing" : printable(said)),
              {.path = path});
}

}  // namespace

void write_picture(const std::string& path, const Session& session,
                   const std::function<std::string()>& draw) {
  const bool is_png = path.ends_with(".png");
  if (!is_png && !path.ends_with(".svg")) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--output",
                      .value = fmt::format("'{}'", escape(path)),
                      .bound = "a name that ends in .svg or .png"});
  }
  print_into(path, session, [&](Output& out) {
    const std::string svg = draw();
    if (!is_png) return out.write(svg);
    const std::string png = png_of(path, svg, session);
    out.write(std::as_bytes(std::span(png)));
  });
}

}  // namespace thalia::cli
