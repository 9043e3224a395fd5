// Opens, walks and verifies any bytes as a .thalia file: as they are, and with their checksums
// made anew, so that what follows a checksum is reached too.

#include <cstring>
#include <span>
#include <string>

#include "format/header.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "support/damage.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace open_target {

// True where verify has no complaint within the limits.
bool is_sound(const std::string& path) {
  try {
    const VerifyOptions options{.input = {.limits = tight_limits()},
                                .work = {.threads = 1, .progress = {}}};
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
    // Streams once, where no checksum comes before what the file claims.
    const Walk walk = walk_file(path, mode, Access::mapped, mode == Verification::off);
    // A reader has no reason to refuse what verify found sound, but for what it cannot resolve.
    FUZZ_REQUIRE(!sound || walk.errors == walk.unsupported);
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(file, bytes);
  if (size < sizeof(format::Header)) return;
  format::Header layout;
  std::memcpy(&layout, data, sizeof layout);
  const std::string before = bytes;
  reseal(bytes, layout);
  if (bytes != before) check(file, bytes);
}

}  // namespace open_target
}  // namespace

FUZZ_TARGET(open)
