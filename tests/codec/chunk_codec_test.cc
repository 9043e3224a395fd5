#include "codec/chunk_codec.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::codec;
using format::Codec;
using format::Filter;

namespace {

constexpr std::string_view kText = "thalia thalia thalia thalia thalia thalia thalia thalia";
// Written by the command line tools from a file with that text: `zstd -3 -c` (1.5.4), `lz4 -c
// --content-size` (1.9.4).
constexpr std::uint8_t kZstdFrame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x37, 0x6d, 0x00, 0x00,
                                       0x38, 0x74, 0x68, 0x61, 0x6c, 0x69, 0x61, 0x20, 0x01,
                                       0x00, 0x29, 0x2a, 0x46, 0xdd, 0xb1, 0x25, 0x37};
constexpr std::uint8_t kLz4Frame[] = {
    0x04, 0x22, 0x4d, 0x18, 0x6c, 0x40, 0x37, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xde,
    0x11, 0x00, 0x00, 0x00, 0x7f, 0x74, 0x68, 0x61, 0x6c, 0x69, 0x61, 0x20, 0x07, 0x00, 0x18,
    0x50, 0x68, 0x61, 0x6c, 0x69, 0x61, 0x00, 0x00, 0x00, 0x00, 0xcc, 0xb5, 0x1a, 0x54};

std::vector<std::byte> compressible(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i / 97 % 7);
  return out;
}

std::vector<std::byte> incompressible(std::size_t size) {
  std::vector<std::byte> out(size);
  std::uint64_t state = 42;
  for (std::byte& byte : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chunk_codec)

BOOST_AUTO_TEST_CASE(every_codec_and_level_gives_back_the_bytes) {
  for (const Codec codec : {Codec::store, Codec::zstd, Codec::lz4}) {
    for (int level = level_range(codec).lowest; level <= level_range(codec).highest; ++level) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, std::size_t{100'001}}) {
        const std::vector<std::byte> raw = compressible(size);
        std::vector<std::byte> stored;
        const Codec used = encode_chunk(codec, level, raw, stored);
        std::vector<std::byte> back(size, std::byte{0xEE});
        decode_chunk(used, Filter::none, stored, back);
        BOOST_TEST((back == raw));
        BOOST_TEST(stored.size() <= raw.size());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(frames_of_the_command_line_tools_are_read) {
  std::vector<char> out(kText.size());
  for (const auto& [codec, frame] : {std::pair(Codec::zstd, as_byte_span(kZstdFrame)),
                                     std::pair(Codec::lz4, as_byte_span(kLz4Frame))}) {
    std::fill(out.begin(), out.end(), '?');
    decode_chunk(codec, Filter::none, frame, std::as_writable_bytes(std::span(out)));
    BOOST_TEST(std::string_view(out.data(), out.size()) == kText);
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_that_does_not_shrink_is_stored) {
  const std::vector<std::byte> raw = incompressible(10'000);
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    std::vector<std::byte> stored;
    BOOST_TEST((encode_chunk(codec, 0, raw, stored) == Codec::store));
    BOOST_TEST((stored == raw));
  }
}

BOOST_AUTO_TEST_CASE(wrong_size_trailing_bytes_and_truncation_are_refused) {
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    const std::vector<std::byte> raw = compressible(5'000);
    std::vector<std::byte> stored;
    BOOST_REQUIRE((encode_chunk(codec, 0, raw, stored) == codec));
    for (const std::size_t size : {std::size_t{0}, std::size_t{4'999}, std::size_t{5'001}}) {
      std::vector<std::byte> out(size);
      BOOST_CHECK_THROW(decode_chunk(codec, Filter::none, stored, out), FormatError);
    }
    std::vector<std::byte> out(raw.size());
    for (std::size_t length = 0; length < stored.size(); ++length) {
      BOOST_CHECK_THROW(decode_chunk(codec, Filter::none, ByteSpan(stored).first(length), out),
                        FormatError);
    }
    std::vector<std::byte> twice = stored;
    twice.push_back(std::byte{0});
    BOOST_CHECK_THROW(decode_chunk(codec, Filter::none, twice, out), FormatError);
    twice.pop_back();
    twice.insert(twice.end(), stored.begin(), stored.end());
    BOOST_CHECK_THROW(decode_chunk(codec, Filter::none, twice, out), FormatError);
  }
}

BOOST_AUTO_TEST_CASE(flipped_bytes_never_write_beyond_the_output) {
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    const std::vector<std::byte> raw = compressible(3'000);
    std::vector<std::byte> stored;
    encode_chunk(codec, 0, raw, stored);
    for (std::size_t at = 0; at < stored.size(); ++at) {
      std::vector<std::byte> damaged = stored;
      damaged[at] ^= std::byte{0xFF};
      std::vector<std::byte> guarded(raw.size() + 64, std::byte{0xA5});
      try {
        decode_chunk(codec, Filter::none, damaged, MutableByteSpan(guarded).first(raw.size()));
      } catch (const FormatError&) {
        // Refusing is right; a frame without a checksum may also decode to other bytes.
      }
      BOOST_TEST(std::all_of(guarded.end() - 64, guarded.end(),
                             [](std::byte b) { return b == std::byte{0xA5}; }));
    }
  }
}

BOOST_AUTO_TEST_CASE(codecs_and_filters_that_do_not_exist_are_refused) {
  std::vector<std::byte> out;
  const std::vector<std::byte> raw = compressible(100);
  BOOST_CHECK_THROW(encode_chunk(Codec::plane_entropy, 0, raw, out), UnsupportedError);
  BOOST_CHECK_THROW(encode_chunk(Codec::zstd, 23, raw, out), UsageError);
  BOOST_CHECK_THROW(encode_chunk(Codec::lz4, 13, raw, out), UsageError);
  std::vector<std::byte> back(100);
  BOOST_CHECK_THROW(decode_chunk(Codec::packed_exponents, Filter::none, raw, back),
                    UnsupportedError);
  BOOST_CHECK_THROW(decode_chunk(Codec::store, Filter::byte_planes, raw, back), UnsupportedError);
}

BOOST_AUTO_TEST_SUITE_END()
