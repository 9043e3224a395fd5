// One file in memory, under a path that can be opened.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

#include "fuzz/fuzz_target.h"

namespace thalia::test {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { FUZZ_REQUIRE(fd_ >= 0); }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// @return the path.
  std::string put(std::span<const char> bytes) {
    FUZZ_REQUIRE(::ftruncate(fd_, 0) == 0);
    FUZZ_REQUIRE(::pwrite(fd_, bytes.data(), bytes.size(), 0) ==
                 static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

  /// What it holds, and no more than one byte beyond `size`.
  std::string get(std::size_t size) const {
    std::string bytes(size + 1, '\0');
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), 0);
    FUZZ_REQUIRE(got >= 0);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

 private:
  int fd_;
};

}  // namespace thalia::test
