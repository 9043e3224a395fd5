// Frames whole and piece by piece, of this library and of other programs.
#include "codec/frame/frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/frame/frames.h"
#include "codec/frame/lz4_block.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using codec::FrameDecoder;
using codec::FrameKind;

BOOST_AUTO_TEST_SUITE(frame)

namespace {

const Codec kCodecs[] = {Codec::zstd, Codec::lz4};

std::string frame_of(Codec codec, const std::string& text, int level = 1) {
  std::vector<std::byte> out;
  codec::encode_frame(codec, level, bytes_of(text), out);
  return text_of(out);
}

std::string decoded(Codec codec, const std::string& frame, std::size_t length) {
  std::vector<std::byte> raw(length);
  codec::decode_frame(codec, bytes_of(frame), raw);
  return text_of(raw);
}

// As if input came `in` bytes at a time, and room `out` bytes at a time.
std::string in_pieces(Codec codec, const std::string& file, std::size_t in, std::size_t out,
                      unsigned frames) {
  const auto decoder = FrameDecoder::create(codec);
  std::string text;
  ByteSpan left = bytes_of(file);
  std::vector<std::byte> room(out);
  for (unsigned ended = 0; ended < frames;) {
    const ByteSpan piece = left.first(std::min(std::max<std::size_t>(in, 4), left.size()));
    const FrameDecoder::Step step = decoder->decode(piece, room);
    if (step.consumed == 0 && step.written == 0 && !step.frame_ended) return "stuck";
    left = left.subspan(step.consumed);
    text += text_of(ByteSpan(room).first(step.written));
    if (step.frame_ended) ++ended;
  }
  return left.empty() ? text : "left";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_frame_comes_back_with_its_content_size_and_checksum) {
  for (const Codec codec : kCodecs) {
    for (const std::string& text : {std::string(), std::string("x"), repeating_text()}) {
      std::string frame = frame_of(codec, text);
      BOOST_TEST((decoded(codec, frame, text.size()) == text));
      BOOST_TEST((codec::frame_kind(bytes_of(frame)) ==
                  (codec == Codec::zstd ? FrameKind::zstd : FrameKind::lz4)));
      if (text.empty()) continue;  // lz4 has no content size of 0
      BOOST_TEST((codec::content_size(bytes_of(frame)) == text.size()));
      frame.back() = static_cast<char>(frame.back() ^ 1);  // of the checksum
      BOOST_CHECK_THROW(decoded(codec, frame, text.size()), FormatError);
    }
  }
}

// For lz4, 1 and 2 are the fast search, and from 3 on it is the dense one, in each of its versions.
BOOST_AUTO_TEST_CASE(levels_of_lz4_mean_the_same_in_frames_and_blocks) {
  const std::string text = repeating_text() + counting_text() + repeating_text();
  const auto block_of = [&](int level) {
    std::vector<std::byte> out;
    codec::lz4_block_encode(level, bytes_of(text), out);
    return text_of(out);
  };
  BOOST_TEST((frame_of(Codec::lz4, text, 1) == frame_of(Codec::lz4, text, 2)));
  BOOST_TEST((frame_of(Codec::lz4, text, 2) != frame_of(Codec::lz4, text, 3)));
  BOOST_TEST((block_of(1) == block_of(2)));
  BOOST_TEST((block_of(2) != block_of(3)));
}

BOOST_AUTO_TEST_CASE(frames_without_content_size_are_decoded_to_the_length_asked_for) {
  const std::string text = counting_text();
  for (const Codec codec : kCodecs) {
    const std::string frame =
        codec_sample(codec == Codec::zstd ? "no_content_size.zst" : "no_content_size.lz4");
    BOOST_TEST(!codec::content_size(bytes_of(frame)).has_value());
    BOOST_TEST((decoded(codec, frame, text.size()) == text));
    for (const std::size_t wrong : {std::size_t{0}, text.size() - 1, text.size() + 1})
      BOOST_CHECK_THROW(decoded(codec, frame, wrong), FormatError);
    BOOST_CHECK_THROW(decoded(codec, frame + "x", text.size()), FormatError);
  }
}

BOOST_AUTO_TEST_CASE(pieces_of_any_size_give_the_same_content) {
  const std::string skipped("\x5e\x2a\x4d\x18\x04\x00\x00\x00skip", 12);
  for (const Codec codec : kCodecs) {
    const bool is_zstd = codec == Codec::zstd;
    const std::string one = codec_sample(is_zstd ? "counting.zst" : "counting.lz4");
    const std::string other = codec_sample(is_zstd ? "no_content_size.zst" : "no_content_size.lz4");
    const std::string text = counting_text() + counting_text();
    for (const std::size_t in : {1u, 7u, 1000u, 1u << 20}) {
      for (const std::size_t out : {1u, 13u, 4096u, 1u << 20})
        BOOST_TEST((in_pieces(codec, one + skipped + other, in, out, 3) == text));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_decoder_takes_its_own_frames_only) {
  const std::string zstd = codec_sample("counting.zst"), lz4 = codec_sample("counting.lz4");
  std::vector<std::byte> room(100);
  // Those of zstd's first versions too are frames that its library may know.
  for (const std::string& file : {lz4, std::string("\x22\xb5\x2f\xfd", 4), std::string("THAL")}) {
    BOOST_CHECK_THROW(FrameDecoder::create(Codec::zstd)->decode(bytes_of(file), room), FormatError);
  }
  BOOST_CHECK_THROW(FrameDecoder::create(Codec::lz4)->decode(bytes_of(zstd), room), FormatError);
  BOOST_CHECK_THROW(FrameDecoder::create(Codec::none), UsageError);
}

BOOST_AUTO_TEST_CASE(no_frame_holds_more_than_its_length_allows) {
  const std::string zeros(50'000'000, '\0');
  for (const Codec codec : kCodecs) {
    const std::string frame = frame_of(codec, zeros, codec == Codec::zstd ? 19 : 12);
    const FrameKind kind = codec::frame_kind(bytes_of(frame));
    BOOST_TEST(codec::most_content(kind, frame.size()) >= zeros.size());
    BOOST_TEST(codec::most_content(kind, ~std::uint64_t{0}) == ~std::uint64_t{0});
  }
}

BOOST_AUTO_TEST_SUITE_END()
