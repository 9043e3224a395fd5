#include "codec/chunk/choice.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "boost_test.h"
#include "codec/chunk/codec.h"
#include "format/chunk.h"
#include "support/bytes.h"

using namespace thalia;
using codec::choose_coding;
using codec::Content;
using codec::ElementLayout;
using format::Filter;
using test::random_bytes;

BOOST_AUTO_TEST_SUITE(chunk_choice)

namespace {

constexpr ElementLayout kF32{Content::floats, 4, 8};
constexpr ElementLayout kBf16{Content::floats, 2, 8};

template <typename T>
std::vector<std::byte> bytes_of_all(const std::vector<T>& values) {
  const ByteSpan bytes = as_byte_span(values);
  return {bytes.begin(), bytes.end()};
}

// Sums of four uniform numbers: exponents as skewed as a trained model's.
std::vector<float> weights(std::size_t count) {
  std::vector<float> out(count);
  std::uint64_t noise = 1;
  for (float& weight : out) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      noise = noise * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<float>(noise >> 48) / 65536;
    }
    weight = (sum - 2) / 50;
  }
  return out;
}

std::vector<std::uint16_t> bf16_weights(std::size_t count) {
  std::vector<std::uint16_t> out;
  for (const float weight : weights(count))
    out.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight) >> 16));
  return out;
}

template <typename Index>
std::vector<Index> ascending(std::size_t count) {
  std::vector<Index> out(count);
  const auto steps = random_bytes(count);
  Index at = 0;
  for (std::size_t i = 0; i < count; ++i) out[i] = at += std::to_integer<Index>(steps[i]) % 16;
  return out;
}

std::size_t stored_size(Codec codec, ElementLayout layout, ByteSpan raw) {
  std::vector<std::byte> out;
  codec::encode_chunk(codec, 0, layout, raw, out);
  return out.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(floats_go_through_byte_planes) {
  for (const std::size_t count : {20'000u, 262'144u}) {
    const auto f32 = bytes_of_all(weights(count));
    BOOST_TEST((choose_coding(Codec::zstd, 3, kF32, f32).filter == Filter::byte_planes_4));
    const auto bf16 = bytes_of_all(bf16_weights(count));
    BOOST_TEST((choose_coding(Codec::zstd, 3, kBf16, bf16).filter == Filter::byte_planes_2));
    // What they promise is kept.
    BOOST_TEST(stored_size(Codec::zstd, kF32, f32) * 1.12 < f32.size());
    BOOST_TEST(stored_size(Codec::zstd, kBf16, bf16) * 1.25 < bf16.size());
  }
}

BOOST_AUTO_TEST_CASE(indices_go_through_differences) {
  const auto narrow = bytes_of_all(ascending<std::uint32_t>(100'000));
  const auto wide = bytes_of_all(ascending<std::uint64_t>(100'000));
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    const auto choose = [&](std::uint8_t width, ByteSpan raw) {
      return choose_coding(codec, 1, {Content::indices, width}, raw);
    };
    BOOST_TEST((choose(4, narrow).filter == Filter::difference_planes_4));
    BOOST_TEST((choose(8, wide).filter == Filter::difference_planes_8));
    // Half a byte of each difference is random; lz4 finds runs of zeros only.
    const std::size_t parts = codec == Codec::zstd ? 6 : 3;
    BOOST_TEST(stored_size(codec, {Content::indices, 4}, narrow) * parts < narrow.size());
    BOOST_TEST(stored_size(codec, {Content::indices, 8}, wide) * 2 * parts < wide.size());
  }
}

// What repeats as it is would repeat in planes too, in more pieces.
BOOST_AUTO_TEST_CASE(integers_that_ascend_go_through_differences_and_others_are_coded) {
  const auto ids = bytes_of_all(ascending<std::uint64_t>(100'000));
  const auto chosen = choose_coding(Codec::plane_entropy, 0, {Content::integers, 8}, ids);
  BOOST_TEST((chosen.codec == Codec::zstd));
  BOOST_TEST((chosen.filter == Filter::difference_planes_8));
  BOOST_TEST(stored_size(Codec::plane_entropy, {Content::integers, 8}, ids) * 8 < ids.size());

  std::vector<std::uint32_t> noise;
  for (const std::byte byte : random_bytes(100'000))
    noise.push_back(std::to_integer<unsigned>(byte));
  const auto counts = bytes_of_all(noise);
  BOOST_TEST((choose_coding(Codec::plane_entropy, 0, {Content::integers, 4}, counts).codec ==
              Codec::plane_entropy));
}

BOOST_AUTO_TEST_CASE(what_repeats_keeps_its_order) {
  std::vector<std::byte> raw;
  const auto pattern = random_bytes(37);
  while (raw.size() < 200'000) raw.insert(raw.end(), pattern.begin(), pattern.end());
  for (const Codec codec : {Codec::zstd, Codec::lz4})
    BOOST_TEST((choose_coding(codec, 1, kF32, raw).filter == Filter::none));
}

// Rows of weights, as an embedding or a Fourier basis has them: a codec of single bytes sees none
// of those that come again.
BOOST_AUTO_TEST_CASE(rows_that_come_again_are_worth_zstd) {
  constexpr std::size_t kRow = 256;
  const std::vector<float> rows = weights(1024 * kRow);
  std::vector<float> again = rows;
  for (std::size_t row = 2; row < 1024; row += 4)
    std::copy_n(&again[(row - 2) * kRow], kRow, &again[row * kRow]);
  const auto noise = bytes_of_all(rows), repeated = bytes_of_all(again);
  for (const Codec codec : {Codec::plane_entropy, Codec::packed_exponents}) {
    BOOST_TEST((choose_coding(codec, 0, kF32, noise).codec == codec));
    BOOST_TEST((choose_coding(codec, 0, kF32, repeated).codec == Codec::zstd));
    BOOST_TEST(stored_size(codec, kF32, repeated) < stored_size(codec, kF32, noise) * 85 / 100);
  }
}

BOOST_AUTO_TEST_CASE(bytes_and_stored_chunks_have_no_filter) {
  const auto raw = bytes_of_all(weights(10'000));
  BOOST_TEST((choose_coding(Codec::zstd, 3, {}, raw).filter == Filter::none));
  const codec::ChunkChoice stored = choose_coding(Codec::none, 0, kF32, raw);
  BOOST_TEST((stored.codec == Codec::none));
  BOOST_TEST((stored.filter == Filter::none));
}

BOOST_AUTO_TEST_CASE(the_level_is_the_one_asked_for) {
  const auto raw = bytes_of_all(weights(1000));
  BOOST_TEST(choose_coding(Codec::zstd, 19, kF32, raw).level == 19);
  BOOST_TEST(choose_coding(Codec::lz4, 1, kF32, raw).level == 1);
}

BOOST_AUTO_TEST_CASE(every_layout_round_trips_at_every_length) {
  const auto floats = bytes_of_all(weights(10'000));
  const auto indices = bytes_of_all(ascending<std::uint64_t>(5000));
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    for (const Content content :
         {Content::bytes, Content::floats, Content::integers, Content::indices}) {
      for (const unsigned width : {1u, 2u, 4u, 8u}) {
        const ElementLayout layout{content, static_cast<std::uint8_t>(width),
                                   content == Content::floats ? std::uint8_t{8} : std::uint8_t{0}};
        for (const std::size_t length : {0u, 1u, 7u, 63u, 4095u, 4097u, 39'999u}) {
          for (const ByteSpan source : {ByteSpan(floats), ByteSpan(indices)}) {
            const ByteSpan raw = source.subspan(length % 2, length);
            std::vector<std::byte> stored;
            const codec::ChunkForm form = codec::encode_chunk(codec, 0, layout, raw, stored);
            BOOST_TEST(stored.size() <= raw.size());
            std::vector<std::byte> back(length);
            codec::decode_chunk(form.codec, form.filter, stored, back);
            BOOST_TEST(test::same_bytes(back, raw), length << " bytes of width " << width);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
