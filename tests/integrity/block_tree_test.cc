#include "integrity/block_tree.h"

#include <cstring>
#include <string>
#include <vector>

#include "boost_test.h"
#include "format/header.h"
#include "integrity/content_hash.h"
#include "integrity/sha256.h"
#include "support/bytes.h"

using namespace thalia;
using format::Header;
using test::hex;
using namespace integrity;

BOOST_AUTO_TEST_SUITE(block_tree)

namespace {

constexpr std::size_t kBlock = 4096;

Header header_of(LeafAlgorithm algorithm, std::uint64_t integrity_offset) {
  Header header{};
  header.leaf_algorithm = algorithm;
  header.integrity_block_log2 = 12;
  header.integrity_offset = integrity_offset;
  return header;
}

std::vector<std::byte> leaves_of(ByteSpan file, const Header& header) {
  const auto length = leaf_length(header.leaf_algorithm);
  const std::uint64_t blocks = block_count(header.integrity_offset, 12);
  std::vector<std::byte> leaves(blocks * length);
  for (std::uint64_t i = 0; i < blocks; ++i)
    hash_block(file, i, header, MutableByteSpan(leaves).subspan(i * length, length));
  return leaves;
}

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 7 + 3) % 251);
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(counts_the_short_last_block) {
  BOOST_TEST(block_count(0, 12) == 0u);
  BOOST_TEST(block_count(1, 12) == 1u);
  BOOST_TEST(block_count(4096, 12) == 1u);
  BOOST_TEST(block_count(4097, 12) == 2u);
  BOOST_TEST(block_count(UINT64_MAX, 30) == 1ull << 34);
}

BOOST_AUTO_TEST_CASE(leaves_are_as_long_as_their_digest) {
  BOOST_TEST(leaf_length(LeafAlgorithm::xxh3_128) == 16u);
  BOOST_TEST(leaf_length(LeafAlgorithm::sha256) == 32u);
}

// Computed with Python's hashlib from the text of docs/format/format.md, "Block tree".
BOOST_AUTO_TEST_CASE(known_answer_with_sha256_leaves) {
  const auto file = counting_bytes(2 * kBlock + 100);
  const Header header = header_of(LeafAlgorithm::sha256, file.size());
  const auto leaves = leaves_of(file, header);
  BOOST_TEST(hex(leaves) ==
             "eb9e6930d2590b4636b10d15af12cee4db1eff027e92d47e3500933d1792a77b"
             "e112c80a01cdcec89b28aaf66ebdb6560a9e607063e5aefcfcea2caf0e5730e7"
             "bc855f6ce9d59c6a6ac926696ffcb7e63a23de98d5cba52e1d5add84fc02de54");
  BOOST_TEST(hex(closing_checksum(header, leaves)) ==
             "52c1ff0cf0fd87d973f4b5dcdbf78ff55c4eb8a56ed26d03964ac8b0271cd4c1");
}

BOOST_AUTO_TEST_CASE(xxh3_leaves_are_digests_with_the_header_as_zeros) {
  auto file = counting_bytes(2 * kBlock + 100);
  const auto leaves = leaves_of(file, header_of(LeafAlgorithm::xxh3_128, file.size()));
  std::memset(file.data(), 0, sizeof(Header));
  const ByteSpan all(file);
  BOOST_TEST(hex(leaves) == hex(xxh3_128(all.first(kBlock))) +
                                hex(xxh3_128(all.subspan(kBlock, kBlock))) +
                                hex(xxh3_128(all.subspan(2 * kBlock))));
}

BOOST_AUTO_TEST_CASE(pieces_give_what_the_block_gives) {
  const auto file = counting_bytes(3 * kBlock);
  for (const LeafAlgorithm algorithm : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    const Header header = header_of(algorithm, file.size());
    const auto length = leaf_length(algorithm);
    LeafHasher hasher(algorithm);
    std::vector<std::byte> leaves(3 * length);
    for (std::size_t block = 0; block < 3; ++block) {
      ByteSpan bytes = ByteSpan(file).subspan(block * kBlock, kBlock);
      if (block == 0) {
        const std::byte zeros[sizeof(Header)] = {};
        hasher.update(zeros);
        bytes = bytes.subspan(sizeof(Header));
      }
      hasher.update(bytes.first(1000));
      hasher.update(bytes.subspan(1000));
      hasher.finish(MutableByteSpan(leaves).subspan(block * length, length));
    }
    BOOST_TEST(hex(leaves) == hex(leaves_of(file, header)));
  }
}

BOOST_AUTO_TEST_CASE(one_flipped_bit_breaks_its_block_and_no_other) {
  auto file = counting_bytes(2 * kBlock + 100);
  for (const LeafAlgorithm algorithm : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    const Header header = header_of(algorithm, file.size());
    const auto leaves = leaves_of(file, header);
    for (const std::size_t at : {std::size_t{256}, kBlock - 1, kBlock, file.size() - 1}) {
      file[at] ^= std::byte{1};
      for (std::uint64_t block = 0; block < 3; ++block)
        BOOST_TEST(block_matches(file, block, header, leaves) == (block != at / kBlock));
      file[at] ^= std::byte{1};
    }
    file[255] ^= std::byte{1};  // the header's last byte is the closing checksum's business
    BOOST_TEST(block_matches(file, 0, header, leaves));
    file[255] ^= std::byte{1};
  }
}

BOOST_AUTO_TEST_CASE(bytes_from_integrity_offset_on_belong_to_no_block) {
  auto file = counting_bytes(kBlock);
  const Header header = header_of(LeafAlgorithm::xxh3_128, kBlock - 64);
  const auto leaves = leaves_of(file, header);
  file[kBlock - 64] ^= std::byte{1};
  BOOST_TEST(block_matches(file, 0, header, leaves));
}

BOOST_AUTO_TEST_CASE(the_closing_checksum_covers_every_byte_of_header_and_leaves) {
  Header header = header_of(LeafAlgorithm::xxh3_128, kBlock);
  std::vector<std::byte> leaves(16);
  const std::string whole = hex(closing_checksum(header, leaves));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&header);
  for (std::size_t i = 0; i < sizeof(Header); ++i) {
    bytes[i] ^= 1;
    BOOST_TEST(hex(closing_checksum(header, leaves)) != whole);
    bytes[i] ^= 1;
  }
  for (std::byte& byte : leaves) {
    byte ^= std::byte{1};
    BOOST_TEST(hex(closing_checksum(header, leaves)) != whole);
    byte ^= std::byte{1};
  }
}

BOOST_AUTO_TEST_SUITE_END()
