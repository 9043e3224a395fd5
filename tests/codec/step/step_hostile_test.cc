#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/cpu/element_samples.h"
#include "codec/step/step_code.h"
#include "codec/step/step_decoder.h"
#include "codec/step/step_encoder.h"
#include "support/bytes.h"
#include "thalia/error.h"

using namespace thalia;
using codec::StepKind;
using codec::VectorSet;

BOOST_AUTO_TEST_SUITE(step_hostile)

namespace {

using Bytes = std::vector<std::byte>;

const StepKind kBf16 = codec::step_kind(DType::bf16).value();

// Two chunks of 4096 elements and a short one, with explicit tables, or one with predefined ones.
struct Stream {
  Bytes base, stored;
};
Stream stream_of(std::size_t count) {
  Stream out;
  out.base = test::random_bytes(2 * count);
  Bytes next = out.base;
  for (std::size_t i = 0; i < count; i += 3)
    next[2 * i] ^= static_cast<std::byte>(1 + i % 7 * (i % 5));
  codec::StepCounts counts(kBf16);
  counts.count(out.base, next);
  codec::StepCode code = choose_step_code(counts);
  code.chunk_log2 = 12;
  code.lanes_log2 = 3;
  codec::StepEncoder encoder(kBf16, code);
  Bytes chunks;
  std::vector<std::uint32_t> lengths;
  for (std::size_t at = 0; at < next.size(); at += 8192) {
    const std::size_t length = std::min<std::size_t>(8192, next.size() - at);
    lengths.push_back(encoder.encode(ByteSpan(out.base).subspan(at, length),
                                     ByteSpan(next).subspan(at, length), chunks));
  }
  out.stored = step_head(code, lengths);
  out.stored.insert(out.stored.end(), chunks.begin(), chunks.end());
  return out;
}

// What the decoders of all sets agree on: the elements, or nothing.
std::optional<Bytes> decoded(ByteSpan stored, ByteSpan base) {
  std::optional<Bytes> expected;
  for (const VectorSet set : test::present_vector_sets()) {
    std::optional<Bytes> out(std::in_place, base.size());
    // Memory of its own, so that a sanitizer sees a byte too far.
    const Bytes bytes(stored.begin(), stored.end());
    try {
      codec::step_decode(kBf16, bytes, base, *out, set);
    } catch (const CompressionError& error) {
      BOOST_TEST(!error.context().bound.empty());
      out.reset();
    }
    if (set == VectorSet::portable) expected = out;
    BOOST_REQUIRE(out == expected);
  }
  return expected;
}

std::string refusal(ByteSpan stored, std::size_t elements) {
  const Bytes base(2 * elements);
  Bytes out(base.size());
  try {
    codec::step_decode(kBf16, stored, base, out);
  } catch (const CompressionError& error) {
    return error.message() + ": " + error.details();
  }
  return "";
}

Bytes bytes(std::initializer_list<int> values) {
  Bytes out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  for (const std::size_t count : {40, 700, 4500}) {
    const auto [base, stored] = stream_of(count);
    BOOST_TEST(decoded(stored, base).has_value());
    const std::size_t step = stored.size() < 600 ? 1 : 7;
    for (std::size_t length = 0; length < stored.size(); length += step)
      BOOST_REQUIRE(!decoded(ByteSpan(stored).first(length), base));
    Bytes longer = stored;
    longer.push_back(std::byte{0});
    BOOST_TEST(!decoded(longer, base));
  }
}

BOOST_AUTO_TEST_CASE(flips_of_any_bit_are_refused_or_decode_alike) {
  for (const std::size_t count : {40, 4500}) {
    const auto [base, stored] = stream_of(count);
    Bytes damaged = stored;
    // All of head and tables, and some of the chunks.
    for (std::size_t i = 0; i < stored.size(); i += i < 300 ? 1 : 61) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        damaged[i] ^= std::byte{1} << bit;
        (void)decoded(damaged, base);
        damaged[i] = stored[i];
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_refused_is_said) {
  BOOST_TEST(refusal({}, 0) == "step_delta frame: bytes of the head: got 0, expected 1 more");
  BOOST_TEST(refusal(bytes({0, 0, 0, 12}), 0) == "");
  BOOST_TEST(refusal(bytes({127, 0, 0, 12}), 0) == "");
  BOOST_TEST(refusal(bytes({128, 0, 0, 12}), 0) ==
             "step_delta frame: table: got 128, expected 0 to 127, or 255");
  BOOST_TEST(refusal(bytes({0, 0, 6, 12}), 0) ==
             "step_delta frame: lanes_log2: got 6, expected 0 to 5");
  BOOST_TEST(refusal(bytes({0, 0, 0, 11}), 0) ==
             "step_delta frame: chunk_log2: got 11, expected 12 to 24");
  BOOST_TEST(refusal(bytes({0, 0, 0, 25}), 0) ==
             "step_delta frame: chunk_log2: got 25, expected 12 to 24");
  BOOST_TEST(refusal(bytes({255, 0, 0, 12}), 0) ==
             "step_delta frame: bytes of tables: got 0, expected 1 or more");
  BOOST_TEST(refusal(bytes({255, 0, 0, 12, 33}), 0) ==
             "step_delta frame: classes: got 33, expected 1 to 32");
  BOOST_TEST(refusal(bytes({255, 0, 0, 12, 1, 2}), 0) ==
             "step_delta frame: spare bits of tables: got 1, expected 0");
  // All 15 digits of two thirds for each of two directions, then nothing else.
  BOOST_TEST(refusal(bytes({255, 0, 0, 12, 1, 0xff, 0, 0, 0, 0}), 0) ==
             "step_delta frame: sum of frequencies: got 61440, expected 32767 or less");
  BOOST_TEST(refusal(bytes({0, 0, 0, 12, 0}), 0) ==
             "step_delta frame: end of the last chunk: got 4, expected 5");
  BOOST_TEST(refusal(bytes({0, 0, 0, 12, 0, 0, 1}), 1) ==
             "step_delta frame: bytes of a chunk: got 3, expected 4 or more");
  BOOST_TEST(refusal(bytes({0, 0, 0, 12, 0, 0, 0, 0}), 1) ==
             "step_delta frame: state: got 0, expected 65536 or more");
  BOOST_TEST(refusal(bytes({0, 0, 0, 12, 0, 0, 0, 0}), 5000) ==
             "step_delta frame: bytes of the chunks' lengths: got 4, expected 4 for each of 2");
}

// A head that promises more chunks than it has bytes allocates nothing for them.
BOOST_AUTO_TEST_CASE(a_huge_tensor_of_few_bytes_is_refused) {
  const Bytes head = bytes({0, 0, 0, 12, 0, 0, 0, 0});
  BOOST_CHECK_THROW(
      codec::StepDecoder(kBf16, std::uint64_t{1} << 62, head, head.size(), VectorSet::portable),
      CompressionError);
  BOOST_TEST(codec::step_most_head_bytes(std::uint64_t{1} << 62, 100) == 100);
}

BOOST_AUTO_TEST_CASE(integers_have_no_classes) {
  const StepKind kind = codec::step_kind(DType::i16).value();
  BOOST_CHECK_THROW(codec::StepDecoder(kind, 0, bytes({0, 1, 0, 12}), 4), CompressionError);
}

BOOST_AUTO_TEST_SUITE_END()
