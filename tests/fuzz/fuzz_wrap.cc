// Opens, walks and verifies any bytes as a wrapped .thalia file, and decodes its first frame.

#include <span>
#include <string>

#include "container/wrap/unwrap.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "support/damage.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace wrap_target {

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

template <typename Action>
void allow_refusal(Action action) {
  try {
    action();
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
    // A packed delta of a later version.
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  const std::string path = file.put({reinterpret_cast<const char*>(data), size});
  const bool sound = is_sound(path);
  for (const Verification mode : {Verification::off, Verification::on_first_touch}) {
    const Walk walk = walk_file(path, mode, Access::mapped, false);
    FUZZ_REQUIRE(!sound || walk.errors == walk.unsupported);
  }
  allow_refusal([&] {
    const auto info = read_wrapper(path, tight_limits());
    FUZZ_REQUIRE(!info || info->has_seek_table == (info->frames != 0));
  });
  allow_refusal([&] {
    const ByteSpan bytes = std::as_bytes(std::span(data, size));
    const container::Unwrapped found = container::unwrap_front_frame(bytes, tight_limits());
    FUZZ_REQUIRE(found.bytes.size() <= tight_limits().max_allocation_bytes);
    FUZZ_REQUIRE(found.frame.size() + found.trailing.size() == size);
  });
}

}  // namespace wrap_target
}  // namespace

FUZZ_TARGET(wrap)
