// Each floor does with plain calls what the library is compared with, and nothing else. What the
// machine does not allow (O_DIRECT, io_uring, an empty cache) is reported as skipped, never
// replaced by something easier.
#include "floors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <system_error>

#include "integrity/content_hash.h"
#include "io/direct/uring.h"
#include "io/system/unique_fd.h"
#include "paired.h"
#include "thalia/error.h"

namespace thalia::bench {
namespace {

using measure::for_each_run;
using measure::kPageBytes;

// Bytes of one call through the page cache; after how many bytes early write-back starts; and bytes
// and number of calls in flight past the page cache, as in measure::write_raw().
constexpr std::size_t kCallBytes = 1 << 20;
constexpr std::size_t kEarlyBytes = 8 << 20;
constexpr std::size_t kDirectBytes = 4 << 20;
constexpr unsigned kDirectCalls = 16;

[[noreturn]] void fail(const char* call, const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string() + ": " + call);
}

io::UniqueFd open_file(const std::filesystem::path& path, int flags) {
  io::UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!fd) fail("open", path);
  return fd;
}

Skipped no_direct(const std::filesystem::path& path) {
  return Skipped(path.string() + ": the file system has no O_DIRECT");
}

// Runs `run`; a failure that means "no O_DIRECT here" becomes a skipped comparison.
template <typename Run>
void skipping_denied(const std::filesystem::path& path, Run run) {
  try {
    run();
  } catch (const IoError& error) {
    if (error.errno_value() == EINVAL) throw no_direct(path);
    throw;
  }
}

io::UniqueFd open_direct(const std::filesystem::path& path, int flags) {
  io::UniqueFd fd(::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, 0666));
  if (!fd && errno == EINVAL) throw no_direct(path);
  if (!fd) fail("open", path);
  return fd;
}

// A short transfer counts as a failure: files and disks here complete their calls.
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

// Makes the compiler believe that somebody reads the value, so that it cannot leave out the work.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace

void copy(ByteSpan from, MutableByteSpan to) {
  std::memcpy(to.data(), from.data(), from.size());
  keep(to.data());
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

void write_file_direct(const std::filesystem::path& path, const measure::PageMemory& memory) {
  skipping_denied(path, [&] { measure::write_raw(path, memory.bytes(), true); });
}

void read_file_direct(const std::filesystem::path& path, const measure::PageMemory& memory) {
  skipping_denied(path, [&] { measure::read_raw(path, memory.bytes(), true); });
}

void read_file_ring(const std::filesystem::path& path, MutableByteSpan out) {
  const io::UniqueFd fd = open_direct(path, O_RDONLY);
  auto ring = io::Uring::create(kDirectCalls);
  if (!ring) throw Skipped("io_uring is denied here");
  // Keeps the ring full until everything is submitted. A call's tag is the length that it must
  // return.
  for (std::size_t begin = 0; begin < out.size() || ring->in_flight() > 0;) {
    while (begin < out.size() && ring->in_flight() < kDirectCalls) {
      const std::size_t length = std::min(kDirectBytes, out.size() - begin);
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
  if (const std::size_t left = measure::drop_from_cache(path); left != 0) {
    throw Skipped(std::to_string(left) +
                  " pages stay in the cache: this folder cannot be read cold");
  }
}

}  // namespace thalia::bench
