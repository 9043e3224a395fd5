#include "integrity/content_hash.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "format/constants.h"
#include "integrity/crc32.h"
#include "support/bytes.h"

using namespace thalia;
using format::kContentPiece;
using integrity::content_digest;
using integrity::ContentHasher;
using integrity::Xxh3;
using integrity::xxh3_128;
using test::hex;
using test::random_bytes;

BOOST_AUTO_TEST_SUITE(content_hash)

namespace {

// The buffer of xxHash's own tests (tests/sanity_test.c, XSUM_fillTestBuffer).
std::vector<std::byte> sanity_buffer(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint64_t generator = 2654435761u;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(generator >> 56);
    generator *= 11400714785074694797u;
  }
  return bytes;
}

// docs/format/format.md, "Content hash", word for word.
Digest128 content_hash_by_definition(ByteSpan bytes) {
  std::vector<Digest128> digests;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), kContentPiece)))
    digests.push_back(xxh3_128(bytes.first(std::min<std::size_t>(bytes.size(), kContentPiece))));
  return xxh3_128(as_byte_span(digests));
}

}  // namespace

// From xxHash's sanity tests, XXH128 with seed 0: lengths that take each of its paths. High half
// first is the canonical order.
BOOST_AUTO_TEST_CASE(xxh3_known_answers) {
  const std::pair<std::size_t, const char*> cases[] = {
      {0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
      {6, "082afe0b8162d12a3e7039bdda43cfc6"},    {12, "6e3efd8fc7802b18061a192713f69ad9"},
      {24, "0ce966e4678d37611e7044d28b1b901d"},   {48, "a002ac4e5478227ef942219aed80f67b"},
      {81, "4952f58181ab00425e8bafb9f95fb803"},   {222, "337e09641b948717f1aebd597cec6b3a"},
      {403, "1b6de21e332dd73dcdeb804d65c6dea4"},  {512, "18d2d110dcc9bca1617e49599013cb6b"},
      {2048, "f736557fd47073a5dd59e2c3a5f038e0"}, {2240, "ccb134fbfa7ce49d6e73a90539cf2948"},
      {2367, "e89c0f6ff369b427cb37aeb9e5d361ed"},
  };
  const auto buffer = sanity_buffer(2367);
  for (const auto& [length, expected] : cases) {
    const ByteSpan bytes = ByteSpan(buffer).first(length);
    BOOST_TEST(hex(xxh3_128(bytes)) == expected);
    Xxh3 hasher;
    hasher.update(bytes.first(length / 3));
    hasher.update(bytes.subspan(length / 3));
    BOOST_TEST(hex(hasher.finish()) == expected);
    hasher.reset();
    for (const std::byte& byte : bytes) hasher.update(ByteSpan(&byte, 1));
    BOOST_TEST(hex(hasher.finish()) == expected);
  }
}

BOOST_AUTO_TEST_CASE(nothing_has_the_hash_of_the_empty_string) {
  BOOST_TEST(hex(ContentHasher().content_hash()) == hex(xxh3_128({})));
  BOOST_TEST(ContentHasher().crc32() == 0u);
  BOOST_TEST(hex(content_digest({}, 1).hash) == hex(xxh3_128({})));
  BOOST_TEST(content_digest({}, 1).crc32 == 0u);
}

BOOST_AUTO_TEST_CASE(follows_its_definition_around_piece_boundaries) {
  const auto bytes = random_bytes(3 * kContentPiece + 5);
  for (const std::size_t size : {std::size_t{1}, kContentPiece - 1, kContentPiece,
                                 kContentPiece + 1, 2 * kContentPiece, bytes.size()}) {
    const ByteSpan all = ByteSpan(bytes).first(size);
    const std::string expected = hex(content_hash_by_definition(all));
    for (const unsigned threads : {1u, 3u}) {
      const auto digest = content_digest(all, threads);
      BOOST_TEST(hex(digest.hash) == expected);
      BOOST_TEST(digest.crc32 == integrity::crc32(all));
    }
    for (const std::size_t step : {std::size_t{1000}, kContentPiece / 2, kContentPiece, size}) {
      ContentHasher hasher;
      for (ByteSpan left = all; !left.empty(); left = left.subspan(std::min(step, left.size())))
        hasher.update(left.first(std::min(step, left.size())));
      BOOST_TEST(hex(hasher.content_hash()) == expected, "size " << size << " step " << step);
      BOOST_TEST(hasher.crc32() == integrity::crc32(all));
    }
  }
}

BOOST_AUTO_TEST_CASE(asking_for_the_hash_does_not_end_it) {
  const auto bytes = random_bytes(2000);
  ContentHasher hasher;
  hasher.update(ByteSpan(bytes).first(700));
  BOOST_TEST(hex(hasher.content_hash()) ==
             hex(content_hash_by_definition(ByteSpan(bytes).first(700))));
  hasher.update(ByteSpan(bytes).subspan(700));
  BOOST_TEST(hex(hasher.content_hash()) == hex(content_hash_by_definition(bytes)));
}

BOOST_AUTO_TEST_SUITE_END()
