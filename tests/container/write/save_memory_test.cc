// What a save allocates for its buffers, held against Work::memory_bytes.
#include <malloc.h>

#include <algorithm>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(save_memory)

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
// Beside the buffers: tables, threads, contexts of a codec.
constexpr std::uint64_t kSlack = 3 * kMiB;
constexpr unsigned kThreads = 4;
// Address space that nobody touches, before a queue's memory, which begins on a huge page.
constexpr std::uint64_t kQueueSlack = kThreads * 2 * kMiB;

std::uint64_t allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// The most that was allocated at a call of progress, above what was allocated before.
class Peak {
 public:
  Progress progress() {
    return [this](std::uint64_t, std::uint64_t) { most_ = std::max(most_, allocated()); };
  }
  std::uint64_t bytes() const { return most_ - std::min(most_, before_); }

 private:
  const std::uint64_t before_ = allocated();
  std::uint64_t most_ = 0;
};

// So much of everything that the memory is what limits it.
SaveOptions greedy_options(std::uint64_t memory_bytes, Codec codec, Peak& peak) {
  return {.compression = {.codec = codec},
          .io = IoMode::direct,
          .queue_depth = 1024,
          .work = {.threads = kThreads, .memory_bytes = memory_bytes, .progress = peak.progress()}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_compressing_save_stays_within_its_memory) {
  if (kSanitized) return;  // malloc is another one
  const TemporaryFolder folder;
  const std::vector<std::byte> data = random_bytes(700 << 10);
  for (const std::uint64_t memory : {4 * kMiB, 32 * kMiB}) {
    for (const bool streamed : {false, true}) {
      Peak peak;
      Writer writer(folder / "f", greedy_options(memory, Codec::lz4, peak));
      const RegionId region = writer.add_region({.name = "r"});
      std::vector<TensorId> ids;
      for (int i = 0; i < 80; ++i) {
        const TensorSpec spec{
            .name = std::to_string(i), .dtype = DType::u8, .shape = {data.size()}};
        ids.push_back(streamed ? writer.add_tensor(region, spec)
                               : writer.add_tensor(region, spec, data));
      }
      for (const TensorId id : ids) {
        if (!streamed) continue;
        for (std::size_t at = 0; at < data.size(); at += 100 << 10)
          writer.write(id, ByteSpan(data).subspan(at, 100 << 10));
      }
      writer.commit();
      BOOST_TEST(peak.bytes() > 0u);
      BOOST_TEST(peak.bytes() <= memory + kSlack, memory << " " << streamed << " " << peak.bytes());
    }
  }
}

// Chunks keep their memory for those that come next, which may be smaller or larger.
BOOST_AUTO_TEST_CASE(large_chunks_behind_more_and_more_small_ones_take_no_more_memory) {
  if (kSanitized) return;
  const TemporaryFolder folder;
  const std::vector<std::byte> data = random_bytes(kMiB);
  Peak peak;
  const std::uint64_t memory = 16 * kMiB;
  Writer writer(folder / "f", greedy_options(memory, Codec::lz4, peak));
  const RegionId region = writer.add_region({.name = "r"});
  int number = 0;
  const auto add = [&](std::uint64_t bytes) {
    writer.add_tensor(region,
                      {.name = std::to_string(number++), .dtype = DType::u8, .shape = {bytes}},
                      ByteSpan(data).first(bytes));
  };
  for (int small = 0; small < 10; ++small) {
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < small; ++k) add(10);
      add(kMiB);
    }
  }
  writer.commit();
  BOOST_TEST(peak.bytes() <= memory + kSlack, peak.bytes());
}

// Streams in turns, then a borrowed tensor: what the streams took is free by then, but for their
// ends.
BOOST_AUTO_TEST_CASE(a_save_of_many_streams_stays_within_its_memory) {
  if (kSanitized) return;
  const TemporaryFolder folder;
  const std::vector<std::byte> data = random_bytes(24 * kMiB);
  constexpr std::uint64_t kStream = 700 << 10;
  const std::uint64_t memory = 32 * kMiB;
  Peak peak;
  Writer writer(folder / "f", greedy_options(memory, Codec::none, peak));
  const RegionId region = writer.add_region({.name = "r"});
  std::vector<TensorId> ids;
  for (int i = 0; i < 60; ++i)
    ids.push_back(writer.add_tensor(
        region, {.name = std::to_string(i), .dtype = DType::u8, .shape = {kStream}}));
  // Not on a page in memory: it goes through the buffers.
  const ByteSpan borrowed = ByteSpan(data).subspan(1);
  writer.add_tensor(region, {.name = "last", .dtype = DType::u8, .shape = {borrowed.size()}},
                    borrowed);
  for (std::uint64_t at = 0; at < kStream; at += kStream / 4)
    for (const TensorId id : ids) writer.write(id, ByteSpan(data).subspan(at, kStream / 4));
  writer.commit();
  BOOST_TEST(peak.bytes() <= memory + kSlack + kQueueSlack, peak.bytes());
}

BOOST_AUTO_TEST_SUITE_END()
