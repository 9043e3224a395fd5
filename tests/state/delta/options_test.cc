// What every save can be asked for, asked of a delta.
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "integrity/sha256.h"
#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/text.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_options)

namespace {

struct Files : TemporaryFolder {
  Files() { save_full(state(1), base); }
  static SampleState state(float value) {
    Tensor tensor = Tensor::zeros(DType::f32, {100, 300});
    for (float& element : tensor.mutable_as<float>()) element = value;
    return {.regions = {{"cortex", {{"w", {std::move(tensor)}}}}}};
  }
  std::filesystem::path base = *this / "base.thalia";
  std::filesystem::path delta = *this / "one.delta.thalia";
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_digest_is_that_of_the_whole_file) {
  const Files files;
  const DeltaResult result =
      save_delta(Files::state(2), files.base, files.delta, {.save = {.sha256 = true}});
  const std::string bytes = read_file(files.delta);
  BOOST_TEST(result.file_bytes == bytes.size());
  BOOST_TEST_REQUIRE(result.sha256.has_value());
  const std::string digest = hex(integrity::sha256(std::as_bytes(std::span(bytes))).bytes);
  BOOST_TEST(hex(result.sha256->bytes) == digest);
  BOOST_TEST(read_file(files / "one.delta.thalia.sha256") == digest + "  one.delta.thalia\n");
}

BOOST_AUTO_TEST_CASE(blocks_have_the_size_that_is_asked_for) {
  const Files files;
  save_delta(Files::state(2), files.base, files.delta, {.save = {.block_log2 = 14}});
  BOOST_TEST(Reader::open(files.delta).header().block_log2 == 14u);
  BOOST_TEST(verify(files.delta).ok());
  check_chain(ChainReader::open(files.delta), Files::state(2));
}

BOOST_AUTO_TEST_CASE(a_codec_that_is_chosen_is_the_one_of_deltas) {
  const Files files;
  const DeltaResult result =
      save_delta(Files::state(2), files.base, files.delta, {.save = {.automatic_codec = true}});
  BOOST_TEST((result.codec == Codec::plane_entropy));
  check_chain(ChainReader::open(files.delta), Files::state(2));
  BOOST_CHECK_EXCEPTION(
      save_delta(Files::state(2), files.base, files.delta,
                 {.save = {.compression = {.codec = Codec::zstd}, .automatic_codec = true}}),
      UsageError, has_code(ErrorCode::bad_argument));
}

// There are three pieces and a bit: the first has changes all over, the second none, the third a
// run.
BOOST_AUTO_TEST_CASE(a_difference_comes_back_from_chunks_of_any_size) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  constexpr std::uint64_t kPiece = 1 << 18, kCount = 3 * kPiece + 13;
  const Tensor before = normal_tensor({kCount}, random);
  Tensor now = before;
  const auto move = [&](std::uint64_t i) { now.mutable_bytes()[4 * i] ^= std::byte{1}; };
  for (std::uint64_t i = 0; i < kPiece; ++i)
    if (random() % 4 == 0) move(i);
  for (std::uint64_t i = 2 * kPiece; i < kCount; i += i < 2 * kPiece + 9000 ? 1 : 4) move(i);
  const auto state_of = [](const Tensor& tensor) {
    return SampleState{.regions = {{"a", {{"w", {tensor}}}}}};
  };
  const auto base = folder / "base.thalia", delta = folder / "one.delta.thalia";
  for (const Codec codec : {Codec::none, Codec::plane_entropy}) {
    save_full(state_of(before), base,
              {.compression = {.codec = codec}, .output = {.durability = Durability::none}});
    for (const std::uint32_t chunk_bytes : {65'536u, 1u << 20, 3u << 20, 1u << 26}) {
      for (const unsigned threads : {1u, 3u}) {
        BOOST_TEST_CONTEXT("chunks of " << chunk_bytes << ", threads " << threads) {
          const DeltaOptions options{
              .save = {.compression = {.chunk_bytes = chunk_bytes}, .work = {.threads = threads}}};
          const DeltaResult result = save_delta(state_of(now), base, delta, options);
          BOOST_TEST(result.differences == 1u);
          // Digests of the stored bytes, which were made piece by piece, are held against them.
          BOOST_TEST(verify(delta).ok());
          check_chain(ChainReader::open(delta), state_of(now));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_result_says_why_writes_are_not_direct) {
  const Files files;
  const DeltaResult asked =
      save_delta(Files::state(2), files.base, files.delta, {.save = {.io = IoMode::direct}});
  BOOST_TEST((asked.io == IoMode::buffered));
  BOOST_TEST(!asked.io_fallback.empty());
  const DeltaResult result = save_delta(Files::state(3), files.base, files.delta);
  BOOST_TEST(result.io_fallback.empty());
}

BOOST_AUTO_TEST_CASE(the_result_is_that_of_a_save) {
  const Files files;
  const DeltaResult result = save_delta(Files::state(2), files.base, files.delta);
  BOOST_TEST(result.regions == 1u);
  BOOST_TEST(result.tensors == 1u);
  BOOST_TEST(result.payload_bytes == 100u * 300 * sizeof(float));
  BOOST_TEST(result.total_neurons == 3u);
  BOOST_TEST(result.identity.depth == 1u);
  BOOST_TEST_REQUIRE(result.digests.size() == 1u);
  const ChainReader chain = ChainReader::open(files.delta);
  BOOST_TEST(
      (result.digests[0].content_hash == chain.describe(chain.reader().tensor("w")).content_hash));
}

BOOST_AUTO_TEST_SUITE_END()
