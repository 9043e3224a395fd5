// Recovers any bytes: as they are, and with the header gone, so that what follows it is
// searched. Whatever comes of it, the file is changed in its first 256 bytes or not at all.

#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "support/damage.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/recover.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace recover_target {

// True of what a reader may still meet after a header that holds: it is not the header's fault.
bool opens(const std::string& path, bool use_commit_record) {
  try {
    Reader::open(path, {.input = {.limits = tight_limits()},
                        .use_commit_record = use_commit_record,
                        .work = {.threads = 1}});
    return true;
  } catch (const Error& error) {
    FUZZ_REQUIRE(error.code() != ErrorCode::io);
    return error.context().section != "header";
  }
}

void check(MemoryFile& file, const std::string& bytes) {
  const std::string path = file.put(bytes);
  const RecoverOptions options{.input = {.limits = tight_limits()}, .work = {.threads = 1}};
  try {
    const RecoverResult result = recover(path, options);
    const std::string found = file.get(bytes.size());
    FUZZ_REQUIRE(found.size() == bytes.size());
    FUZZ_REQUIRE(found.substr(256) == bytes.substr(256));
    FUZZ_REQUIRE(result.restored || found == bytes);
    FUZZ_REQUIRE(opens(path, false));
    FUZZ_REQUIRE(!recover(path, options).restored);
    // Where the header was replaced, a reader would have found the same.
    file.put(bytes);
    FUZZ_REQUIRE(opens(path, true));
  } catch (const IntegrityError&) {
    FUZZ_REQUIRE(file.get(bytes.size()) == bytes);
    FUZZ_REQUIRE(!opens(path, true));
  } catch (const UnsupportedError&) {
    FUZZ_REQUIRE(file.get(bytes.size()) == bytes);
  } catch (const FormatError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
    FUZZ_REQUIRE(file.get(bytes.size()) == bytes);
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(file, bytes);
  std::memset(bytes.data(), 0, std::min<std::size_t>(size, 256));
  check(file, bytes);
}

}  // namespace recover_target
}  // namespace

FUZZ_TARGET(recover)
