// What compressing takes: memory within its bound, and no file where none is of use.
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "boost_test.h"
#include "formats/mckp/samples.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/formats/compressor.h"
#include "thalia/formats/mckp.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(mckp_memory)

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
// Beside what is bounded: stacks, tables of codecs, and what the allocator keeps.
constexpr std::uint64_t kSlack = 12 * kMiB;

// The most memory that the process ever had at once.
std::uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

// In a process of its own, whose peak begins with what it has.
void check_peak(std::uint64_t most, const std::function<void()>& work) {
  const test::Outcome outcome = test::run_with_faults({}, [&] {
    // What is freed goes back at once; kept for later, it would count as taken.
    ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
    const std::uint64_t before = peak_bytes();
    work();
    const std::uint64_t taken = peak_bytes() - before;
    if (!test::kSanitized && taken > most)
      throw std::runtime_error(std::to_string(taken / kMiB) + " MiB taken");
  });
  BOOST_TEST((outcome.kind == test::Outcome::Kind::returned), outcome.message);
}

// Nothing in it can be compressed.
const std::vector<std::byte>& noise() {
  static const std::vector<std::byte> bytes = test::random_bytes(40 * kMiB, 1);
  return bytes;
}

void write(const MckpWriteOptions& options, DType dtype) {
  std::uint64_t written = 0;
  MckpWriter writer([&](ByteSpan piece) { written += piece.size(); }, options);
  const std::uint64_t width = dtype_bits(dtype) / 8;
  writer.add("large", Tensor::borrow(dtype, {noise().size() / width}, noise()));
  for (std::uint64_t i = 0; i < 8; ++i)
    writer.add(std::to_string(i),
               Tensor::borrow(dtype, {kMiB / width}, ByteSpan(noise()).subspan(i * kMiB, kMiB)));
  const MckpWriteResult result = writer.commit();
  if (result.original_size != 48 * kMiB || written != result.file_bytes)
    throw std::logic_error("not what was written");
}

}  // namespace

BOOST_AUTO_TEST_CASE(compressing_stays_within_its_memory_whatever_its_threads) {
  const test::TemporaryFolder folder;
  noise();
  for (const std::uint64_t memory : {20 * kMiB, 48 * kMiB})
    for (const unsigned threads : {1u, 3u, 64u})
      for (const Codec codec : {Codec::none, Codec::lz4, Codec::plane_entropy}) {
        BOOST_TEST_CONTEXT(memory / kMiB << " MiB, " << threads << " threads, codec "
                                         << static_cast<int>(codec))
        check_peak(memory + kSlack, [&] {
          write({.compression = {.codec = codec},
                 .temporary_folder = folder.path(),
                 .work = {.threads = threads, .memory_bytes = memory}},
                DType::bf16);
        });
      }
}

BOOST_AUTO_TEST_CASE(compressing_into_memory_makes_no_file_and_holds_the_result_once) {
  noise();
  const test::TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.tensors["large"] = Tensor::borrow(DType::u8, {noise().size()}, noise());
  check_peak(noise().size() + 40 * kMiB + kSlack, [&] {
    ::setenv("TMPDIR", (folder / "none").c_str(), 1);
    const CheckpointCompressor compressor(
        {.compression = {.codec = Codec::none}, .work = {.memory_bytes = 40 * kMiB}});
    const CompressedCheckpoint compressed = compressor.compress(checkpoint);
    if (compressed.bytes.size() < noise().size()) throw std::logic_error("no bytes");
  });
}

BOOST_AUTO_TEST_CASE(one_codec_is_the_default_of_all_that_write) {
  const CheckpointCompressor compressor;
  Checkpoint checkpoint;
  checkpoint.tensors["w"] = test::normal_bf16({4000}, 1);
  compressor.save(checkpoint, "a");
  const MckpFile file = MckpFile::from_bytes(compressor.storage().view("a"));
  BOOST_TEST((file.find("w")->method == MckpMethod{.codec = Codec::plane_entropy}));
  const MckpFile written =
      test::open_bytes(test::mckp_bytes({{"w", test::normal_bf16({4000}, 1)}}));
  BOOST_TEST((written.find("w")->method == MckpMethod{.codec = Codec::plane_entropy}));
}

BOOST_AUTO_TEST_SUITE_END()
