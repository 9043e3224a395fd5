#include "codec/chunk/codec.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/frame/frames.h"
#include "format/chunk.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using codec::ChunkForm;
using codec::decode_chunk;
using codec::encode_chunk;
using format::Filter;
using test::bytes_of;
using test::random_bytes;
using test::text_of;

BOOST_AUTO_TEST_SUITE(chunk_codec)

namespace {

std::vector<std::byte> decode(Codec codec, ByteSpan stored, std::size_t raw_length) {
  std::vector<std::byte> raw(raw_length);
  decode_chunk(codec, Filter::none, stored, raw);
  return raw;
}

// Half noise, half order, in runs, as a trained model's bytes are.
std::vector<std::byte> half_compressible(std::size_t count) {
  auto bytes = random_bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    if (i / 100 % 2 == 0) bytes[i] = std::byte{7};
  return bytes;
}

}  // namespace

// tests/data/codec/README.md says how the frames were made.
BOOST_AUTO_TEST_CASE(decodes_what_the_programs_wrote) {
  const struct {
    const char* name;
    Codec codec;
    std::string raw;
  } cases[] = {
      {"counting.zst", Codec::zstd, test::counting_text()},
      {"counting_fast.zst", Codec::zstd, test::counting_text()},
      {"repeat.zst", Codec::zstd, test::repeating_text()},
      {"counting.lz4", Codec::lz4, test::counting_text()},
      {"repeat.lz4", Codec::lz4, test::repeating_text()},
  };
  for (const auto& c : cases) {
    const std::string stored = test::codec_sample(c.name);
    BOOST_TEST(text_of(decode(c.codec, bytes_of(stored), c.raw.size())) == c.raw, c.name);
  }
}

BOOST_AUTO_TEST_CASE(every_level_round_trips) {
  const auto raw = half_compressible(300000);
  for (const auto& [codec, highest] : {std::pair{Codec::zstd, 22}, std::pair{Codec::lz4, 12}}) {
    for (int level = 0; level <= highest; ++level) {
      std::vector<std::byte> stored = {std::byte{1}};
      BOOST_TEST((encode_chunk(codec, level, {}, raw, stored) == ChunkForm{codec}));
      BOOST_TEST(stored.size() < raw.size() * 6 / 10);
      BOOST_TEST((decode(codec, stored, raw.size()) == raw), "level " << level);
    }
  }
}

// Around the codecs' block sizes: 64 KiB, 128 KiB, 4 MiB.
BOOST_AUTO_TEST_CASE(every_size_round_trips) {
  for (const std::size_t size :
       {100u, 65535u, 65536u, 65537u, 131072u, 131073u, 4194304u, 4194305u, 9000000u}) {
    const auto raw = half_compressible(size);
    for (const Codec codec : {Codec::zstd, Codec::lz4}) {
      std::vector<std::byte> stored;
      const Codec used = encode_chunk(codec, 0, {}, raw, stored).codec;
      BOOST_TEST((decode(used, stored, size) == raw), "size " << size);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_shrink_is_stored) {
  for (const std::size_t size : {0u, 1u, 5u, 1000u, 100000u}) {
    const auto raw = random_bytes(size);
    for (const Codec codec : {Codec::zstd, Codec::lz4, Codec::none}) {
      std::vector<std::byte> stored = {std::byte{1}};
      BOOST_TEST((encode_chunk(codec, 0, {}, raw, stored) == ChunkForm{}));
      BOOST_TEST((stored == raw));
      BOOST_TEST((decode(Codec::none, stored, size) == raw));
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_input_gives_equal_frames) {
  const auto raw = half_compressible(300000);
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    std::vector<std::byte> first, second;
    encode_chunk(codec, 0, {}, raw, first);
    encode_chunk(codec, 0, {}, raw, second);
    BOOST_TEST((first == second));
  }
}

BOOST_AUTO_TEST_CASE(the_programs_open_the_frames) {
  const test::TemporaryFolder folder;
  const auto raw = half_compressible(300000);
  [[maybe_unused]] const auto opens = [&](Codec codec, const std::string& program) {
    std::vector<std::byte> stored;
    BOOST_REQUIRE((encode_chunk(codec, 0, {}, raw, stored) == ChunkForm{codec}));
    test::write_file(folder / "stored", text_of(stored));
    const std::string command = "'" + program + "' -d -q < '" + (folder / "stored").string() +
                                "' > '" + (folder / "raw").string() + "'";
    BOOST_TEST(std::system(command.c_str()) == 0);
    BOOST_TEST((test::read_file(folder / "raw") == text_of(raw)), program);
  };
#ifdef THALIA_PROGRAM_ZSTD
  opens(Codec::zstd, THALIA_PROGRAM_ZSTD);
#else
  BOOST_TEST_MESSAGE("the program zstd is not installed: left out");
#endif
#ifdef THALIA_PROGRAM_LZ4
  opens(Codec::lz4, THALIA_PROGRAM_LZ4);
#else
  BOOST_TEST_MESSAGE("the program lz4 is not installed: left out");
#endif
}

BOOST_AUTO_TEST_CASE(levels_that_are_none_are_usage_errors) {
  const auto bad = [](const UsageError& error) { return error.code() == ErrorCode::bad_argument; };
  std::vector<std::byte> out;
  BOOST_CHECK_EXCEPTION(encode_chunk(Codec::zstd, 23, {}, {}, out), UsageError, bad);
  BOOST_CHECK_EXCEPTION(encode_chunk(Codec::zstd, -1, {}, {}, out), UsageError, bad);
  BOOST_CHECK_EXCEPTION(encode_chunk(Codec::lz4, 13, {}, {}, out), UsageError, bad);
  BOOST_CHECK_EXCEPTION(encode_chunk(Codec::none, 1, {}, {}, out), UsageError, bad);
  for (const int code : {5, 255})
    BOOST_CHECK_EXCEPTION(encode_chunk(Codec(code), 0, {}, {}, out), UsageError, bad);
}

BOOST_AUTO_TEST_CASE(codecs_and_filters_of_other_versions_are_unsupported) {
  std::vector<std::byte> raw(4);
  for (const int code : {5, 255})
    BOOST_CHECK_THROW(decode_chunk(Codec(code), Filter::none, raw, raw), UnsupportedError);
  for (const int filter : {6, 7, 255})
    BOOST_CHECK_THROW(decode_chunk(Codec::none, static_cast<Filter>(filter), raw, raw),
                      UnsupportedError);
}

BOOST_AUTO_TEST_SUITE_END()
