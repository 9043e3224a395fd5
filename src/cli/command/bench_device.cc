#include "cli/command/bench_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "thalia/error.h"

namespace thalia::cli {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kCallBytes = 1 << 20;
constexpr unsigned kCallsInFlight = 16;
constexpr std::size_t kMostThreads = 256;

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

// job(begin, length) for each run of kCallBytes of `size`, on `threads` threads. The first
// exception ends the others and is rethrown.
template <typename Job>
void for_each_run(std::size_t size, unsigned threads, Job job) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::size_t at; (at = next.fetch_add(kCallBytes)) < size;)
        job(at, std::min(kCallBytes, size - at));
    } catch (...) {
      next = size;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t runs = (size + kCallBytes - 1) / kCallBytes;
    const std::size_t most = std::min({std::size_t{threads}, runs, kMostThreads});
    for (std::size_t i = 1; i < most; ++i) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

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

}  // namespace

PageMemory::PageMemory(std::uint64_t bytes)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes))), size_(bytes) {
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, bytes);
}

void fill_with_weights(MutableByteSpan bytes, unsigned threads) {
  // Irwin and Hall: the sum of four uniform numbers, whose variance is 4 times 2^32 / 12.
  const float scale = 0.02F / std::sqrt(4 * 0x1p32F / 12);
  for_each_run(bytes.size(), threads, [&](std::size_t begin, std::size_t length) {
    // SplitMix64 of Steele, Lea and Flood, which can start anywhere.
    std::uint64_t state = begin * 0x9e3779b97f4a7c15U;
    for (std::size_t at = begin; at < begin + length; at += sizeof(float)) {
      std::uint64_t z = state += 0x9e3779b97f4a7c15U;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
      z = (z ^ z >> 27) * 0x94d049bb133111ebU;
      z ^= z >> 31;
      const std::uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
      // The low half again, so that the last bits of the mantissa are as random as trained ones.
      const float value =
          (static_cast<float>(sum) - 131070 + static_cast<float>(z & 0xffff) * 0x1p-16F) * scale;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
  });
}

void copy_memory(ByteSpan from, MutableByteSpan to, unsigned threads) {
  for_each_run(from.size(), threads, [&](std::size_t begin, std::size_t length) {
    std::memcpy(to.data() + begin, from.data() + begin, length);
  });
}

BenchFolder::BenchFolder(const std::filesystem::path& parent) {
  std::string pattern = (parent / "thalia-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail("mkdtemp", parent);
  path_ = pattern;
  const std::filesystem::path probe = path_ / "probe";
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0666);
  allows_direct_ = descriptor >= 0;
  if (descriptor >= 0) ::close(descriptor);
  ::unlink(probe.c_str());
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void BenchFolder::settle() const {
  const File folder(path_, O_RDONLY | O_DIRECTORY);
  if (::syncfs(folder.get()) != 0) fail("syncfs", path_);
}

void BenchFolder::touch_free_memory(std::uint64_t bytes) const {
  const std::filesystem::path path = path_ / "touched";
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  ::unlink(path.c_str());
  const std::vector<std::byte> zeros(kCallBytes);
  for (std::uint64_t at = 0; at < bytes; at += kCallBytes) {
    transfer_whole("pwrite", path, at, kCallBytes, [&](std::size_t done) {
      return ::pwrite(file.get(), zeros.data(), kCallBytes - done, static_cast<off_t>(at + done));
    });
  }
}

void write_raw(const std::filesystem::path& path, ByteSpan bytes, bool direct,
               const std::stop_token& stop) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC | (direct ? O_DIRECT : 0));
  // Into reserved space, so that the writes need not wait for each other.
  errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes.size()));
  if (errno != 0 && errno != EOPNOTSUPP) fail("posix_fallocate", path);
  for_each_run(bytes.size(), kCallsInFlight, [&](std::size_t begin, std::size_t length) {
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
  for_each_run(out.size(), kCallsInFlight, [&](std::size_t begin, std::size_t length) {
    throw_if_stopped(stop);
    transfer_whole("pread", path, begin, length, [&](std::size_t done) {
      return ::pread(file.get(), out.data() + begin + done, length - done,
                     static_cast<off_t>(begin + done));
    });
  });
}

bool drop_from_cache(const std::filesystem::path& path) {
  const File file(path, O_RDWR);
  if (::fsync(file.get()) != 0) fail("fsync", path);
  errno = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (errno != 0) fail("posix_fadvise", path);

  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  void* const mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) fail("mmap", path);
  std::vector<unsigned char> resident((size + kPageBytes - 1) / kPageBytes);
  const int status = ::mincore(mapping, size, resident.data());
  const int error = errno;
  ::munmap(mapping, size);
  errno = error;
  if (status != 0) fail("mincore", path);
  return std::none_of(resident.begin(), resident.end(),
                      [](unsigned char page) { return (page & 1) != 0; });
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw CancelledError(ErrorCode::cancelled, "stopped by a signal");
}

}  // namespace thalia::cli
