// The yardstick of the benchmarks: what the disk does with plain calls, without this library's
// format. It uses the same means as the library's fastest path, reserved space and many large calls
// in flight past the page cache; a slower yardstick would flatter the library.
#include "measure/disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "measure/memory.h"
#include "thalia/error.h"

namespace thalia::measure {
namespace {

// With calls of 1 MiB, the disks that were tried reached half of the speed.
constexpr std::size_t kCallBytes = 4 << 20;
constexpr unsigned kCallsInFlight = 16;

[[noreturn]] void fail(const char* call, const std::filesystem::path& path) {
  throw IoError(call, errno, {.path = path.string()});
}

class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail("open", path);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// Calls call(done), a pread or a pwrite, until `length` bytes are through.
template <typename Call>
void transfer_whole(const char* name, const std::filesystem::path& path, std::size_t begin,
                    std::size_t length, Call call) {
  for (std::size_t done = 0; done < length;) {
    const ssize_t moved = call(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      throw IoError(name, moved < 0 ? errno : EIO, {.path = path.string(), .offset = begin + done});
    }
    done += static_cast<std::size_t>(moved);
  }
}

// A file that is unlinked right after it is opened; the process number makes its name unique.
std::filesystem::path passing_file(const std::filesystem::path& folder, const char* what) {
  return folder / ("thalia-" + std::string(what) + "-" + std::to_string(::getpid()));
}

}  // namespace

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
  std::string pattern = (parent / "thalia-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail("mkdtemp", parent);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool allows_direct(const std::filesystem::path& folder) {
  const std::filesystem::path path = passing_file(folder, "probe");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0666);
  if (descriptor >= 0) ::close(descriptor);
  ::unlink(path.c_str());
  return descriptor >= 0;
}

void write_raw(const std::filesystem::path& path, ByteSpan bytes, bool direct,
               const std::stop_token& stop) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0));
  // Writes into reserved space need not wait for each other. Some file systems cannot reserve; the
  // bytes are the same.
  errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes.size()));
  if (errno != 0 && errno != EOPNOTSUPP) fail("posix_fallocate", path);
  for_each_run(bytes.size(), kCallBytes, kCallsInFlight,
               [&](std::size_t begin, std::size_t length) {
                 throw_if_stopped(stop);
                 transfer_whole("pwrite", path, begin, length, [&](std::size_t done) {
                   return ::pwrite(file.get(), bytes.data() + begin + done, length - done,
                                   static_cast<off_t>(begin + done));
                 });
               });
  if (::fsync(file.get()) != 0) fail("fsync", path);
}

void read_raw(const std::filesystem::path& path, MutableByteSpan out, bool direct,
              const std::stop_token& stop) {
  const File file(path, O_RDONLY | (direct ? O_DIRECT : 0));
  for_each_run(out.size(), kCallBytes, kCallsInFlight, [&](std::size_t begin, std::size_t length) {
    throw_if_stopped(stop);
    transfer_whole("pread", path, begin, length, [&](std::size_t done) {
      return ::pread(file.get(), out.data() + begin + done, length - done,
                     static_cast<off_t>(begin + done));
    });
  });
}

std::size_t drop_from_cache(const std::filesystem::path& path) {
  const File file(path, O_RDWR);
  // Only clean pages can be dropped.
  if (::fsync(file.get()) != 0) fail("fsync", path);
  errno = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (errno != 0) fail("posix_fadvise", path);

  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  // The advice may be ignored, so the pages that stayed are counted: mapping the file loads none.
  void* const mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) fail("mmap", path);
  std::vector<unsigned char> resident((size + kPageBytes - 1) / kPageBytes);
  const int status = ::mincore(mapping, size, resident.data());
  const int error = errno;
  ::munmap(mapping, size);
  errno = error;
  if (status != 0) fail("mincore", path);
  return static_cast<std::size_t>(std::count_if(
      resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

void touch_free_memory(const std::filesystem::path& folder, std::uint64_t bytes) {
  const std::filesystem::path path = passing_file(folder, "touched");
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  ::unlink(path.c_str());
  // The name is gone, the space stays taken until the file is closed; then the pages are free
  // again.
  const std::vector<std::byte> zeros(kCallBytes);
  for (std::uint64_t at = 0; at < bytes; at += kCallBytes) {
    transfer_whole("pwrite", path, at, kCallBytes, [&](std::size_t done) {
      return ::pwrite(file.get(), zeros.data(), kCallBytes - done, static_cast<off_t>(at + done));
    });
  }
}

void settle(const std::filesystem::path& folder) {
  const File opened(folder, O_RDONLY | O_DIRECTORY);
  if (::syncfs(opened.get()) != 0) fail("syncfs", folder);
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw CancelledError(ErrorCode::cancelled, "stopped by a signal");
}

}  // namespace thalia::measure
