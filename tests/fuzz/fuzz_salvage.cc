// Salvages any bytes: as they are, and cut in the middle, with the header gone. What comes out is a
// file that verifies, or nothing; the input stays.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "support/damage.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/recover.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace salvage_target {

void check(MemoryFile& file, const std::string& bytes, const std::filesystem::path& output) {
  const std::string path = file.put(bytes);
  const SalvageOptions options{
      .save = {.output = {.durability = Durability::none}, .work = {.threads = 1}},
      .input = {.limits = tight_limits()}};
  try {
    const SalvageResult result = salvage(path, output, options);
    FUZZ_REQUIRE(verify(output, {.work = {.threads = 1}}).ok());
    // What was there once at most, and tables and texts.
    FUZZ_REQUIRE(result.tensors > 0 || result.lost.empty());
    std::filesystem::remove(output);
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  } catch (const FormatError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
  }
  FUZZ_REQUIRE(!std::filesystem::exists(output));
  FUZZ_REQUIRE(file.get(bytes.size()) == bytes);
}

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  static const TemporaryFolder folder;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(file, bytes, folder / "out");
  std::string cut = bytes.substr(0, size - size / 8);
  check(file, cut, folder / "out");
  std::memset(bytes.data(), 0, std::min<std::size_t>(size, 256));
  check(file, bytes, folder / "out");
}

}  // namespace salvage_target
}  // namespace

FUZZ_TARGET(salvage)
