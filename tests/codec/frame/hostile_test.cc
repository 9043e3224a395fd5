// Frames that are broken, cut or not what the directory says: refused, and nothing is written
// outside the span they were to fill.
#include <algorithm>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/chunk/codec.h"
#include "codec/frame/frames.h"
#include "format/chunk.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using format::Filter;
using test::bytes_of;
using test::codec_sample;

BOOST_AUTO_TEST_SUITE(hostile_frame)

namespace {

const std::string kText = test::counting_text();
const std::string kSkippable = std::string("\x50\x2a\x4d\x18\x04\x00\x00\x00", 8) + "skip";

enum class Result { decoded, decoded_wrong, refused, refused_before_writing };

// Decodes into the middle of a buffer whose ends must stay as they are.
Result decode(Codec codec, std::string_view stored, std::size_t raw_length) {
  constexpr std::byte kUntouched{0xa5};
  constexpr std::size_t kFence = 64;
  // Exactly as long as the bytes, so that a sanitizer sees a read beyond them.
  const std::vector<std::byte> exact(bytes_of(stored).begin(), bytes_of(stored).end());
  std::vector<std::byte> buffer(raw_length + 2 * kFence, kUntouched);
  const MutableByteSpan raw = MutableByteSpan(buffer).subspan(kFence, raw_length);
  Result result = Result::refused;
  try {
    codec::decode_chunk(codec, Filter::none, exact, raw);
    const bool right = test::text_of(raw) == kText.substr(0, raw_length);
    result = right ? Result::decoded : Result::decoded_wrong;
  } catch (const FormatError& error) {
    BOOST_TEST((error.code() == ErrorCode::bad_compression));
    if (std::all_of(raw.begin(), raw.end(), [](std::byte b) { return b == kUntouched; }))
      result = Result::refused_before_writing;
  }
  for (std::size_t i = 0; i < kFence; ++i) {
    BOOST_REQUIRE((buffer[i] == kUntouched));
    BOOST_REQUIRE((buffer[buffer.size() - 1 - i] == kUntouched));
  }
  return result;
}

const struct {
  Codec codec;
  const char* sample;
  const char* without_content_size;
} kFrames[] = {{Codec::zstd, "counting.zst", "no_content_size.zst"},
               {Codec::lz4, "counting.lz4", "no_content_size.lz4"}};

}  // namespace

BOOST_AUTO_TEST_CASE(another_content_size_than_asked_for_is_refused_before_writing) {
  const std::size_t right = kText.size();
  for (const auto& frame : kFrames) {
    const std::string stored = codec_sample(frame.sample);
    BOOST_TEST((decode(frame.codec, stored, right) == Result::decoded));
    for (const std::size_t wrong : {std::size_t{0}, std::size_t{1}, right - 1, right + 1})
      BOOST_TEST((decode(frame.codec, stored, wrong) == Result::refused_before_writing));
  }
}

BOOST_AUTO_TEST_CASE(a_frame_without_content_size_is_refused_before_writing) {
  for (const auto& frame : kFrames) {
    const std::string stored = codec_sample(frame.without_content_size);
    for (const std::size_t size : {std::size_t{0}, kText.size()})
      BOOST_TEST((decode(frame.codec, stored, size) == Result::refused_before_writing));
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_single_frame_is_refused) {
  const std::size_t size = kText.size();
  for (const auto& frame : kFrames) {
    const std::string stored = codec_sample(frame.sample);
    for (const std::string& other : {stored + '\0', stored + stored, stored + kSkippable}) {
      const Result result = decode(frame.codec, other, size);
      BOOST_TEST((result == Result::refused || result == Result::refused_before_writing));
    }
    for (const std::string& other : {kSkippable + stored, kSkippable, std::string()})
      for (const std::size_t raw_length : {std::size_t{0}, size})
        BOOST_TEST((decode(frame.codec, other, raw_length) == Result::refused_before_writing));
  }
}

BOOST_AUTO_TEST_CASE(zstd_finds_bytes_behind_the_frame_before_writing) {
  const std::string stored = codec_sample("counting.zst") + "x";
  BOOST_TEST((decode(Codec::zstd, stored, kText.size()) == Result::refused_before_writing));
}

BOOST_AUTO_TEST_CASE(every_cut_is_refused) {
  for (const auto& frame : kFrames) {
    const std::string stored = codec_sample(frame.sample);
    for (std::size_t length = 0; length < stored.size(); ++length) {
      const Result result = decode(frame.codec, stored.substr(0, length), kText.size());
      BOOST_REQUIRE((result == Result::refused || result == Result::refused_before_writing));
    }
  }
}

// Both samples carry a checksum of their contents, so a frame that decodes decodes right.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_refused_or_harmless) {
  for (const auto& frame : kFrames) {
    std::string stored = codec_sample(frame.sample);
    for (std::size_t at = 0; at < stored.size(); ++at) {
      for (const int flip : {0x01, 0xff}) {
        stored[at] = static_cast<char>(stored[at] ^ flip);
        const Result result = decode(frame.codec, stored, kText.size());
        BOOST_REQUIRE((result != Result::decoded_wrong));
        stored[at] = static_cast<char>(stored[at] ^ flip);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(frames_that_lie_about_their_content_are_refused) {
  for (const int difference : {-1, 1}) {
    // Both headers have the content size as little-endian bytes at a fixed place: zstd at 5 (two
    // bytes, less 256), lz4 at 6, whose header checksum at 14 is repaired by trial.
    std::string zstd = codec_sample("counting.zst");
    zstd[5] = static_cast<char>(zstd[5] + difference);
    BOOST_TEST((decode(Codec::zstd, zstd, kText.size() + difference) != Result::decoded));
    std::string lz4 = codec_sample("counting.lz4");
    lz4[6] = static_cast<char>(lz4[6] + difference);
    for (int checksum = 0; checksum < 256; ++checksum) {
      lz4[14] = static_cast<char>(checksum);
      BOOST_TEST((decode(Codec::lz4, lz4, kText.size() + difference) != Result::decoded));
    }
  }
}

BOOST_AUTO_TEST_CASE(stored_bytes_of_another_size_are_refused) {
  BOOST_TEST((decode(Codec::none, "123", 4) == Result::refused_before_writing));
  BOOST_TEST((decode(Codec::none, "12345", 4) == Result::refused_before_writing));
  BOOST_TEST((decode(Codec::none, "1\n2\n", 4) == Result::decoded));
  BOOST_TEST((decode(Codec::none, "", 0) == Result::decoded));
}

BOOST_AUTO_TEST_SUITE_END()
