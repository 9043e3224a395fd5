// Every option of a save that has bounds: at them it holds, one beyond is one clear error.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(save_bounds)

namespace {

using Path = std::filesystem::path;

// The options of a save that have bounds, with these; every other one is named here and not used.
struct Bounded {
  std::string name;
  std::function<void(SaveOptions&, std::uint64_t)> set;
  std::uint64_t low;
  std::uint64_t high;
};
const std::vector<Bounded>& bounded_options() {
  [[maybe_unused]] const auto [checksum, leaves, block_log2, compression, automatic_codec, sha256,
                               timestamp, file_uuid, output, io, queue_depth, work] = SaveOptions{};
  [[maybe_unused]] const auto [codec, level, chunk_bytes] = compression;
  [[maybe_unused]] const auto [threads, memory_bytes, progress, cancel] = work;
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  static const std::vector<Bounded> all{
      {"block_log2",
       [](SaveOptions& o, std::uint64_t n) { o.block_log2 = static_cast<unsigned>(n); }, 12, 30},
      {"compression_level",
       [](SaveOptions& o, std::uint64_t n) { o.compression.level = static_cast<int>(n); }, 0, 22},
      {"chunk_bytes",
       [](SaveOptions& o, std::uint64_t n) {
         o.compression.chunk_bytes = static_cast<std::uint32_t>(n);
       },
       4096, 1 << 30},
      {"queue_depth",
       [](SaveOptions& o, std::uint64_t n) { o.queue_depth = static_cast<unsigned>(n); }, 1, 1024},
      {"memory_bytes", [](SaveOptions& o, std::uint64_t n) { o.work.memory_bytes = n; }, 4 << 20,
       kAny},
      // There are never more threads than cores and a few.
      {"threads",
       [](SaveOptions& o, std::uint64_t n) { o.work.threads = static_cast<unsigned>(n); }, 0,
       std::numeric_limits<unsigned>::max()},
  };
  return all;
}

void save_one(const Path& path, const Bounded& option, std::uint64_t value) {
  static const std::vector<float> bytes(64);
  SaveOptions options{.compression = {.codec = Codec::zstd, .chunk_bytes = 4096},
                      .output = {.durability = Durability::none},
                      .io = IoMode::buffered,
                      .work = {.threads = 1}};
  option.set(options, value);
  Writer writer(path, options);
  writer.add_tensor(writer.add_region({.name = "r"}), {.name = "w", .shape = {64}},
                    as_byte_span(bytes));
  writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(options_of_a_save_hold_up_to_their_bounds) {
  const TemporaryFolder folder;
  for (const Bounded& option : bounded_options()) {
    BOOST_TEST_CONTEXT(option.name) {
      for (const std::uint64_t value : {option.low, option.high}) {
        save_one(folder / "f", option, value);
        BOOST_TEST(verify(folder / "f").findings.empty());
        std::filesystem::remove(folder / "f");
      }
      std::vector<std::uint64_t> beyond;
      if (option.low != 0) beyond.push_back(option.low - 1);
      if (option.high < std::numeric_limits<unsigned>::max()) beyond.push_back(option.high + 1);
      for (const std::uint64_t value : beyond) {
        BOOST_CHECK_EXCEPTION(save_one(folder / "f", option, value), UsageError,
                              says(ErrorCode::bad_argument, option.name,
                                   "got " + std::to_string(value), std::to_string(option.low)));
        BOOST_TEST(list_folder(folder.path()).empty());
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
