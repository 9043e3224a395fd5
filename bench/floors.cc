#include "floors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>

#include "base/parallel.h"
#include "integrity/content_hash.h"
#include "io/unique_fd.h"
#include "io/uring.h"
#include "paired.h"

namespace thalia::bench {
namespace {

constexpr std::size_t kCallBytes = 1 << 20;
constexpr std::size_t kCopyBytes = 4 << 20;
constexpr std::size_t kEarlyBytes = 8 << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr unsigned kDirectCalls = 16;

[[noreturn]] void fail(const char* call, const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string() + ": " + call);
}

io::UniqueFd open_file(const std::filesystem::path& path, int flags) {
  io::UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!fd) fail("open", path);
  return fd;
}

io::UniqueFd open_direct(const std::filesystem::path& path, int flags) {
  io::UniqueFd fd(::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, 0666));
  if (!fd && errno == EINVAL) throw Skipped(path.string() + ": the file system has no O_DIRECT");
  if (!fd) fail("open", path);
  return fd;
}

void write_at(int fd, std::size_t offset, ByteSpan bytes, const std::filesystem::path& path) {
  errno = 0;
  if (::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) != std::ssize(bytes))
    fail("pwrite", path);
}

void read_at(int fd, std::size_t offset, MutableByteSpan out, const std::filesystem::path& path) {
  errno = 0;
  if (::pread(fd, out.data(), out.size(), static_cast<off_t>(offset)) != std::ssize(out))
    fail("pread", path);
}

// Calls job(begin, length) for each run of `step` bytes of `size`.
template <typename Job>
void for_each_run(std::size_t size, std::size_t step, unsigned threads, Job job) {
  parallel_for((size + step - 1) / step, threads,
               [&](std::size_t i) { job(i * step, std::min(step, size - i * step)); });
}

// The compiler must believe that somebody looks.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace

void copy(ByteSpan from, MutableByteSpan to) {
  std::memcpy(to.data(), from.data(), from.size());
  keep(to.data());
}

void copy_all(ByteSpan from, MutableByteSpan to, unsigned threads) {
  for_each_run(from.size(), kCopyBytes, threads, [&](std::size_t begin, std::size_t length) {
    copy(from.subspan(begin, length), to.subspan(begin, length));
  });
}

void read_all(ByteSpan bytes, unsigned threads) {
  for_each_run(bytes.size(), kCallBytes, threads, [&](std::size_t begin, std::size_t length) {
    const std::byte* at = bytes.data() + begin;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + sizeof sum <= length; i += sizeof sum) {
      std::uint64_t word;
      std::memcpy(&word, at + i, sizeof word);
      sum += word;
    }
    keep(sum);
  });
}

void touch_pages(ByteSpan bytes) {
  unsigned sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes)
    sum += std::to_integer<unsigned>(bytes[at]);
  if (!bytes.empty()) sum += std::to_integer<unsigned>(bytes.back());
  keep(sum);
}

void hash_all(ByteSpan bytes, unsigned threads) {
  for_each_run(bytes.size(), kCallBytes, threads, [&](std::size_t begin, std::size_t length) {
    keep(integrity::xxh3_128(bytes.subspan(begin, length)).bytes[0]);
  });
}

void write_file(const std::filesystem::path& path, ByteSpan bytes, Sync sync, unsigned threads) {
  const io::UniqueFd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0) fail("ftruncate", path);
  for_each_run(bytes.size(), kCallBytes, threads, [&](std::size_t begin, std::size_t length) {
    write_at(fd.get(), begin, bytes.subspan(begin, length), path);
    const std::size_t end = begin + length;
    if (sync == Sync::early_and_end && end % kEarlyBytes == 0 &&
        ::sync_file_range(fd.get(), static_cast<off_t>(end - kEarlyBytes), kEarlyBytes,
                          SYNC_FILE_RANGE_WRITE) != 0)
      fail("sync_file_range", path);
  });
  if (sync != Sync::none && ::fsync(fd.get()) != 0) fail("fsync", path);
}

void read_file(const std::filesystem::path& path, MutableByteSpan out, unsigned threads) {
  const io::UniqueFd fd = open_file(path, O_RDONLY);
  for_each_run(out.size(), kCallBytes, threads, [&](std::size_t begin, std::size_t length) {
    read_at(fd.get(), begin, out.subspan(begin, length), path);
  });
}

PageAligned::PageAligned(std::size_t size)
    : memory_(static_cast<std::byte*>(
          std::aligned_alloc(kPageBytes, (size + kPageBytes - 1) / kPageBytes * kPageBytes))),
      size_(size) {
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, size);
}

PageAligned::PageAligned(ByteSpan contents) : PageAligned(contents.size()) {
  copy(contents, bytes());
}

void write_file_direct(const std::filesystem::path& path, const PageAligned& memory) {
  const io::UniqueFd fd = open_direct(path, O_WRONLY | O_CREAT | O_TRUNC);
  const ByteSpan bytes = memory.bytes();
  // Into reserved space, so that the writes need not wait for each other.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes.size()));
      error != 0) {
    errno = error;
    fail("posix_fallocate", path);
  }
  for_each_run(bytes.size(), kCallBytes, kDirectCalls, [&](std::size_t begin, std::size_t length) {
    write_at(fd.get(), begin, bytes.subspan(begin, length), path);
  });
  if (::fsync(fd.get()) != 0) fail("fsync", path);
}

void read_file_direct(const std::filesystem::path& path, const PageAligned& memory) {
  const io::UniqueFd fd = open_direct(path, O_RDONLY);
  const MutableByteSpan out = memory.bytes();
  for_each_run(out.size(), kCallBytes, kDirectCalls, [&](std::size_t begin, std::size_t length) {
    read_at(fd.get(), begin, out.subspan(begin, length), path);
  });
}

void read_file_ring(const std::filesystem::path& path, MutableByteSpan out) {
  const io::UniqueFd fd = open_direct(path, O_RDONLY);
  auto ring = io::Uring::create(kDirectCalls);
  if (!ring) throw Skipped("io_uring is denied here");
  for (std::size_t begin = 0; begin < out.size() || ring->in_flight() > 0;) {
    while (begin < out.size() && ring->in_flight() < kDirectCalls) {
      const std::size_t length = std::min(kCallBytes, out.size() - begin);
      errno = ring->read(fd.get(), begin, out.subspan(begin, length), -1, length);
      if (errno != 0) fail("io_uring_submit", path);
      begin += length;
    }
    const io::Uring::Completion completion = ring->wait();
    errno = completion.result < 0 ? -completion.result : 0;
    if (completion.result != static_cast<std::int64_t>(completion.tag)) fail("read", path);
  }
}

RawMapping::RawMapping(const std::filesystem::path& path) {
  const io::UniqueFd fd = open_file(path, O_RDONLY);
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) fail("fstat", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) fail("mmap", path);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

RawMapping::~RawMapping() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void drop_from_cache(const std::filesystem::path& path) {
  {
    const io::UniqueFd fd = open_file(path, O_RDWR);
    if (::fsync(fd.get()) != 0) fail("fsync", path);
    if (const int error = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED); error != 0) {
      errno = error;
      fail("posix_fadvise", path);
    }
  }
  const RawMapping mapping(path);
  std::vector<unsigned char> resident((mapping.bytes().size() + kPageBytes - 1) / kPageBytes);
  if (::mincore(const_cast<std::byte*>(mapping.bytes().data()), mapping.bytes().size(),
                resident.data()) != 0)
    fail("mincore", path);
  const auto left = std::count_if(resident.begin(), resident.end(),
                                  [](unsigned char page) { return (page & 1) != 0; });
  if (left != 0)
    throw Skipped(std::to_string(left) + " of " + std::to_string(resident.size()) +
                  " pages stay in the cache: this folder cannot be read cold");
}

void touch_free_memory(const std::filesystem::path& folder, std::uint64_t bytes) {
  const io::UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) fail("open", folder);
  const std::vector<std::byte> zeros(kCallBytes);
  for (std::uint64_t at = 0; at < bytes; at += kCallBytes) write_at(fd.get(), at, zeros, folder);
}

void settle(const std::filesystem::path& folder) {
  const io::UniqueFd fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (::syncfs(fd.get()) != 0) fail("syncfs", folder);
}

}  // namespace thalia::bench
