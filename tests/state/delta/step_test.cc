// Steps in the order of values: every type that has them, chains that mix them with other ways,
// parts of any place, and how little they take.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_steps)

namespace {

namespace fs = std::filesystem;

constexpr DType kTypes[] = {DType::bf16,        DType::f16,         DType::f8_e4m3, DType::f8_e5m2,
                            DType::f8_e4m3fnuz, DType::f8_e5m2fnuz, DType::f8_e8m0, DType::i8,
                            DType::u8,          DType::i16,         DType::u16};

// Weights in 16 bits, as training has them.
Tensor weights(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  Tensor out = Tensor::zeros(DType::bf16, {count});
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
    std::memcpy(out.mutable_bytes().data() + 2 * i, &bits, 2);
  }
  return out;
}

// One element of `rare` moves, most of them by one value.
Tensor moved(const Tensor& from, std::uint64_t rare, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor out = from.owned();
  const MutableByteSpan bytes = out.mutable_bytes();
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    if (random() % rare != 0) continue;
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i, width);
    const int distance = static_cast<int>(1 << (std::countr_zero(random() | 0x80)));
    bits = static_cast<std::uint16_t>(random() % 2 == 0 ? bits + distance : bits - distance);
    std::memcpy(bytes.data() + i, &bits, width);
  }
  return out;
}

SampleState one(const Tensor& tensor, std::uint64_t steps = 0) {
  return {.regions = {{"cortex", {{"w", {tensor}}}}}, .steps = steps};
}

Encoding stored_as(const fs::path& path) {
  return Reader::open(path).region("cortex").at("w").encoding();
}

std::uint64_t stored_bytes(const fs::path& path) {
  return Reader::open(path).region("cortex").at("w").stored_bytes();
}

// Parts that begin and end anywhere.
void check_parts(const ChainReader& chain, const Tensor& tensor) {
  std::mt19937_64 random(9);
  const TensorView view = chain.reader().region("cortex").at("w");
  const std::uint64_t size = tensor.bytes().size();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t begin = random() % (size + 1);
    const std::uint64_t length =
        std::min<std::uint64_t>(size - begin, random() % (1 + (size >> i % 12)));
    std::vector<std::byte> part(length);
    chain.read_part(view, begin, part);
    BOOST_TEST(same_bytes(part, tensor.bytes().subspan(begin, length)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_comes_back_to_the_bit) {
  std::mt19937_64 random(1);
  for (const DType dtype : kTypes) {
    BOOST_TEST_CONTEXT(dtype_name(dtype)) {
      const TemporaryFolder folder;
      // Every pattern of bits: NaNs with their payloads, infinities and negative zeros.
      const Tensor before = random_tensor(dtype, {50, 1001}, random);
      const Tensor after = moved(before, 3, 2);
      save_full(one(before), folder / "0");
      const DeltaResult result = save_delta(one(after), folder / "0", folder / "1");
      BOOST_TEST(result.steps == 1u);
      BOOST_TEST((stored_as(folder / "1") == Encoding::step_delta));
      const ChainReader chain = ChainReader::open(folder / "1");
      check_chain(chain, one(after));
      check_parts(chain, after);
      BOOST_TEST(verify(folder / "1").ok());
      BOOST_TEST(verify_chain(folder / "1").ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(zeros_and_nans_change_their_signs) {
  const std::vector<std::uint16_t> from{0x0000, 0x8000, 0x7FC1, 0xFFC1, 0x7F80, 0xFF80, 0x3F80, 0};
  const std::vector<std::uint16_t> to{0x8000, 0x0000, 0xFFC1, 0x7F81, 0xFF80, 0x7F80, 0x7FC0, 1};
  const auto tensor = [](const std::vector<std::uint16_t>& bits) {
    Tensor out = weights(20'000, 12);
    std::memcpy(out.mutable_bytes().data() + 9000, bits.data(), 2 * bits.size());
    return out;
  };
  const TemporaryFolder folder;
  save_full(one(tensor(from)), folder / "0");
  save_delta(one(tensor(to)), folder / "0", folder / "1");
  BOOST_TEST((stored_as(folder / "1") == Encoding::step_delta));
  check_chain(ChainReader::open(folder / "1"), one(tensor(to)));
}

BOOST_AUTO_TEST_CASE(chains_mix_steps_with_all_other_ways) {
  // Several chunks, and the last one short.
  Tensor state = weights(1'700'001, 3);
  const TemporaryFolder folder;
  const auto path = [&](int link) { return folder / (std::to_string(link) + ".thalia"); };
  save_full(one(state), path(0),
            {.compression = {.codec = Codec::zstd}, .output = {.durability = Durability::none}});
  std::vector<Encoding> ways;
  for (int link = 1; link <= 6; ++link) {
    if (link == 3) {
      state = weights(1'700'001, 4);  // nothing of the base is left
    } else if (link == 5) {
      state =
          Tensor::filled({.dtype = DType::bf16, .shape = {1'900'000}}, [&](MutableByteSpan out) {
            std::fill(out.begin(), out.end(), std::byte{0});
            std::copy(state.bytes().begin(), state.bytes().end(), out.begin());
            out[7] ^= std::byte{1};
          });
    } else {
      state = moved(state, link == 2 ? 10'000 : 20, static_cast<std::uint64_t>(link));
    }
    save_delta(one(state), path(link - 1), path(link));
    ways.push_back(stored_as(path(link)));
    const ChainReader chain = ChainReader::open(path(link));
    check_chain(chain, one(state));
    check_parts(chain, state);
  }
  BOOST_TEST(std::ranges::count(ways, Encoding::step_delta) == 4);
  BOOST_TEST(verify_chain(path(6)).ok());
  resolve(path(6), folder / "full.thalia");
  check_chain(ChainReader::open(folder / "full.thalia"), one(state));
}

BOOST_AUTO_TEST_CASE(coded_bytes_that_may_not_stay_in_memory_are_made_again) {
  const Tensor before = weights(4'000'000, 5), after = moved(before, 2, 6);
  const TemporaryFolder folder;
  save_full(one(before), folder / "0");
  const auto save = [&](std::uint64_t memory, unsigned threads) {
    const fs::path path = folder / (std::to_string(memory) + "-" + std::to_string(threads));
    save_delta(one(after), folder / "0", path,
               {.save = {.timestamp = 1,
                         .file_uuid = std::array<std::uint8_t, 16>{},
                         .work = {.threads = threads, .memory_bytes = memory}},
                .pack = false});
    return read_file(path);
  };
  const std::string kept = save(256 << 20, 1);
  BOOST_TEST((save(4 << 20, 1) == kept));
  BOOST_TEST((save(4 << 20, 3) == kept));
  BOOST_TEST((save(256 << 20, 3) == kept));
  check_chain(ChainReader::open(folder / std::to_string(4 << 20).append("-3")), one(after));
}

BOOST_AUTO_TEST_CASE(small_steps_of_few_weights_take_few_bytes) {
  const Tensor before = weights(2'000'000, 7), after = moved(before, 100, 8);
  const TemporaryFolder folder;
  save_full(one(before), folder / "0");
  save_delta(one(after), folder / "0", folder / "1");
  // Which ones: 0.081 bits each. By how much, and where to: 3.75 bits of each that moved.
  BOOST_TEST(stored_bytes(folder / "1") < 2'000'000 * (0.081 + 0.0375) / 8 * 1.03);
}

BOOST_AUTO_TEST_CASE(of_a_few_elements_there_is_the_shorter_of_steps_and_list) {
  const Tensor before = weights(70'000, 9);
  const TemporaryFolder folder;
  save_full(one(before), folder / "0");
  Tensor after = before.owned();
  after.mutable_bytes()[4001] ^= std::byte{0x40};
  const DeltaResult result = save_delta(one(after), folder / "0", folder / "1");
  BOOST_TEST(result.steps + result.lists == 1U);
  BOOST_TEST(stored_bytes(folder / "1") < 30U);
  check_chain(ChainReader::open(folder / "1"), one(after));
  const Tensor none = Tensor::zeros(DType::bf16, {0, 3});
  save_full(one(none), folder / "empty");
  BOOST_TEST(save_delta(one(none), folder / "empty", folder / "same").same == 1U);
}

BOOST_AUTO_TEST_CASE(elements_within_a_threshold_do_not_move) {
  const Tensor before = weights(10'000, 10), after = moved(before, 2, 11);
  const TemporaryFolder folder;
  save_full(one(before), folder / "0");
  save_delta(one(after), folder / "0", folder / "exact");
  save_delta(one(after), folder / "0", folder / "near", {.loss = {.threshold = 1e-3}});
  BOOST_TEST((stored_as(folder / "near") == Encoding::step_delta));
  BOOST_TEST(stored_bytes(folder / "near") < stored_bytes(folder / "exact"));
  const ChainReader chain = ChainReader::open(folder / "near");
  const Tensor kept = chain.read(chain.reader().region("cortex").at("w"));
  const auto number = [](const Tensor& tensor, std::size_t i) {
    std::uint16_t bits;
    std::memcpy(&bits, tensor.bytes().data() + 2 * i, 2);
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  };
  std::size_t stays = 0, moves = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    const float from = number(before, i), to = number(after, i), now = number(kept, i);
    BOOST_REQUIRE((now == from || now == to || std::isnan(to)));
    if (from == to) continue;
    ++(now == to ? moves : stays);
    if (now == from) BOOST_REQUIRE(std::abs(to - from) < 1e-3F);
  }
  BOOST_TEST(stays > 1000U);
  BOOST_TEST(moves > 100U);
}

BOOST_AUTO_TEST_SUITE_END()
