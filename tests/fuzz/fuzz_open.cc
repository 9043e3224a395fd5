// Opens, walks and verifies any bytes as a .thalia file: as they are, and with their checksums
// made anew, so that what stands behind a checksum is reached too.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include "fuzz/fuzz_target.h"
#include "support/damage.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {

// One file in memory, under a path that can be opened.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { FUZZ_REQUIRE(fd_ >= 0); }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string put(std::span<const char> bytes) {
    FUZZ_REQUIRE(::ftruncate(fd_, 0) == 0);
    FUZZ_REQUIRE(::pwrite(fd_, bytes.data(), bytes.size(), 0) ==
                 static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

// True where verify has no complaint within the limits.
bool is_sound(const std::string& path) {
  try {
    const VerifyOptions options{.limits = tight_limits(), .threads = 1, .progress = {}};
    return verify(path, options).ok();
  } catch (const FormatError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
    return false;
  }
}

void check(MemoryFile& file, std::span<const char> bytes) {
  const std::string path = file.put(bytes);
  const bool sound = is_sound(path);
  for (const Verification mode :
       {Verification::off, Verification::on_first_touch, Verification::at_open}) {
    const Walk walk = walk_file(path, mode);
    // A reader has no reason to refuse what verify found sound, but for what it cannot resolve.
    FUZZ_REQUIRE(!sound || walk.errors == walk.unsupported);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(file, bytes);
  if (size < sizeof(format::Header)) return 0;
  format::Header layout;
  std::memcpy(&layout, data, sizeof layout);
  const std::string before = bytes;
  reseal(bytes, layout);
  if (bytes != before) check(file, bytes);
  return 0;
}
