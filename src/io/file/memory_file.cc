// A memfd and its mapping share their pages: what is written at an address is what a read of the
// descriptor returns. Errors name no path, because there is none, but the size that was asked for.
#include "io/file/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>

#include "io/system/posix_error.h"
#include "thalia/error.h"

namespace thalia::io {
namespace {

[[noreturn]] void fail(const char* operation, std::uint64_t size, int errno_value) {
  throw IoError(operation, errno_value,
                {.field = "memory", .value = std::to_string(size) + " bytes"});
}

}  // namespace

UniqueFd create_memory_file() {
  UniqueFd fd(::memfd_create("thalia", MFD_CLOEXEC));
  if (!fd) fail("memfd_create", 0, errno);
  return fd;
}

MemoryMapping::MemoryMapping(int fd, std::uint64_t size) {
  if (size == 0) return;
  // The upper half of the address space is the kernel's, and off_t has a sign.
  if (size > std::numeric_limits<std::size_t>::max() / 2) fail("mmap", size, EFBIG);
  if (retry_interrupted([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) != 0)
    fail("ftruncate", size, errno);
  void* const address =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) fail("mmap", size, errno);
  bytes_ = {static_cast<std::byte*>(address), size};
}

MemoryMapping::~MemoryMapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace thalia::io
