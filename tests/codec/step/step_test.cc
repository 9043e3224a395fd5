#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/cpu/element_samples.h"
#include "codec/step/step_code.h"
#include "codec/step/step_counts.h"
#include "codec/step/step_decoder.h"
#include "codec/step/step_encoder.h"
#include "support/bytes.h"
#include "thalia/error.h"

using namespace thalia;
using codec::StepCode;
using codec::StepKind;
using codec::VectorSet;

BOOST_AUTO_TEST_SUITE(step)

namespace {

using Bytes = std::vector<std::byte>;
using Codes = std::vector<std::uint16_t>;

constexpr DType kTypes[] = {DType::bf16,    DType::f16,     DType::i16, DType::u16,
                            DType::f8_e4m3, DType::f8_e5m2, DType::i8,  DType::u8};

struct Pair {
  Bytes base, next;
};

Bytes bytes_of(const StepKind& kind, const Codes& codes) {
  Bytes out;
  for (const std::uint16_t code : codes)
    for (unsigned i = 0; i < kind.bytes; ++i)
      out.push_back(static_cast<std::byte>(code >> (8 * i) & 0xff));
  return out;
}

// Any codes, or those of small weights, and the same with one in so many moved.
Pair moved(const StepKind& kind, std::size_t count, unsigned one_in, int most, bool narrow) {
  std::mt19937 random(static_cast<unsigned>(count) + one_in);
  Codes base(count), next;
  for (std::uint16_t& code : base) {
    code = static_cast<std::uint16_t>(random());
    // bf16 of exponents 112 to 127.
    if (narrow) code = static_cast<std::uint16_t>((code & 0x87ff) | 0x3800);
  }
  next = base;
  for (std::uint16_t& code : next)
    if (one_in != 0 && random() % one_in == 0)
      code = static_cast<std::uint16_t>(code + static_cast<int>(random() % (2u * most + 1)) - most);
  return {bytes_of(kind, base), bytes_of(kind, next)};
}

StepCode code_of(const StepKind& kind, const Pair& pair, VectorSet set) {
  codec::StepCounts counts(kind);
  counts.count(pair.base, pair.next, set);
  return choose_step_code(counts);
}

Bytes encoded(const StepKind& kind, const StepCode& code, const Pair& pair, VectorSet set) {
  codec::StepEncoder encoder(kind, code, set);
  const std::size_t most = static_cast<std::size_t>(code.chunk_elements()) * kind.bytes;
  Bytes chunks;
  std::vector<std::uint32_t> lengths;
  for (std::size_t at = 0; at < pair.base.size(); at += most) {
    const std::size_t length = std::min(most, pair.base.size() - at);
    lengths.push_back(encoder.encode(ByteSpan(pair.base).subspan(at, length),
                                     ByteSpan(pair.next).subspan(at, length), chunks));
  }
  Bytes out = step_head(code, lengths);
  BOOST_TEST(out.size() == step_head_bytes(code));
  out.insert(out.end(), chunks.begin(), chunks.end());
  return out;
}

// Every set makes the same bytes, and what they were made of from them, in place too.
void check(const StepKind& kind, const StepCode& code, const Pair& pair) {
  const Bytes expected = encoded(kind, code, pair, VectorSet::portable);
  for (const VectorSet set : test::present_vector_sets()) {
    BOOST_REQUIRE(test::same_bytes(encoded(kind, code, pair, set), expected));
    Bytes out(pair.base.size());
    codec::step_decode(kind, expected, pair.base, out, set);
    BOOST_REQUIRE(test::same_bytes(out, pair.next));
    out = pair.base;
    codec::step_decode(kind, expected, out, out, set);
    BOOST_REQUIRE(test::same_bytes(out, pair.next));
  }
}

// With each number of states, and chunks as short as they can be.
void check_shapes(const StepKind& kind, const Pair& pair) {
  StepCode code = code_of(kind, pair, VectorSet::portable);
  codec::StepCounts counts(kind);
  counts.count(pair.base, pair.next, VectorSet::portable);
  for (const VectorSet set : test::present_vector_sets()) {
    codec::StepCounts same(kind);
    same.count(pair.base, pair.next, set);
    for (std::size_t i = 0; i < counts.exponents(); ++i) BOOST_REQUIRE(same.at(i) == counts.at(i));
    const StepCode other = code_of(kind, pair, set);
    BOOST_REQUIRE(other.table == code.table && other.first_class == code.first_class);
    BOOST_REQUIRE(other.rows == code.rows && other.expected_bytes == code.expected_bytes);
  }
  check(kind, code, pair);
  code.chunk_log2 = 12;
  for (code.lanes_log2 = 0; code.lanes_log2 <= 5; ++code.lanes_log2) check(kind, code, pair);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_comes_back_from_every_set) {
  for (const DType dtype : kTypes) {
    const StepKind kind = codec::step_kind(dtype).value();
    for (const std::size_t count : {0, 1, 7, 31, 33, 127, 9001})
      for (const unsigned one_in : {0, 300, 4, 1})
        for (const int most : {1, 20, 20000})
          check_shapes(kind, moved(kind, count, one_in, most, most != 20));
  }
}

BOOST_AUTO_TEST_CASE(types_that_have_no_steps) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i4, DType::boolean,
                            DType::c64, DType::f6_e2m3, DType::binary})
    BOOST_TEST(!codec::step_kind(dtype).has_value());
  BOOST_TEST(!codec::step_kind(DType::f8_e8m0).value().is_float);
}

// Each code to each of some: NaNs, infinities, minus zero, subnormals, the greatest steps.
BOOST_AUTO_TEST_CASE(every_code_goes_to_special_ones) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::i16, DType::f8_e4m3, DType::u8}) {
    const StepKind kind = codec::step_kind(dtype).value();
    const std::uint32_t end = 1u << kind.bits();
    for (const std::uint32_t to : {0u, 1u, end / 2, end / 2 + 1, end - 1, 0x7f80u, 0xff81u}) {
      Codes base, next;
      for (std::uint32_t code = 0; code < end; code += kind.bytes == 1 ? 1 : 13) {
        base.push_back(static_cast<std::uint16_t>(code));
        next.push_back(static_cast<std::uint16_t>(to));
      }
      const Pair pair{bytes_of(kind, base), bytes_of(kind, next)};
      check(kind, code_of(kind, pair, VectorSet::portable), pair);
    }
  }
}

// -0 is beside 0, and a weight that grows by one in the last place takes one step whatever its
// sign.
BOOST_AUTO_TEST_CASE(steps_are_in_the_order_of_values) {
  const StepKind kind = codec::step_kind(DType::bf16).value();
  const Codes base{0x0000, 0x8000, 0x3f80, 0xbf80, 0x3fff, 0x0000};
  const Codes next{0x8000, 0x0000, 0x3f81, 0xbf7f, 0x4000, 0x0001};
  codec::StepCounts counts(kind);
  counts.count(bytes_of(kind, base), bytes_of(kind, next));
  BOOST_TEST(counts.at(0)[2] == 1);    // 0 to -0: down
  BOOST_TEST(counts.at(0)[1] == 2);    // -0 to 0, and 0 to the first subnormal number: up
  BOOST_TEST(counts.at(127)[1] == 3);  // up, too
  BOOST_TEST(counts.elements() == 6);
  BOOST_TEST(counts.changed() == 6);
}

// Classes are clamped at both ends where the exponents span more than there are.
BOOST_AUTO_TEST_CASE(a_wide_span_of_exponents_comes_back) {
  const StepKind kind = codec::step_kind(DType::bf16).value();
  const Pair pair = moved(kind, 20000, 3, 2, false);
  StepCode code = code_of(kind, pair, VectorSet::portable);
  for (const unsigned first_class : {0, 1, 100, 224, 255}) {
    code.first_class = static_cast<std::uint8_t>(first_class);
    code.table = 40;
    code.rows = codec::predefined_step_rows(code.table);
    code.explicit_tables.clear();
    check(kind, code, pair);
  }
}

BOOST_AUTO_TEST_CASE(the_expected_length_is_near) {
  const StepKind kind = codec::step_kind(DType::bf16).value();
  for (const unsigned one_in : {0, 1000, 50, 3}) {
    const Pair pair = moved(kind, 70000, one_in, 2, true);
    const StepCode code = code_of(kind, pair, VectorSet::portable);
    const auto length = encoded(kind, code, pair, codec::fastest_vector_set()).size();
    BOOST_TEST(length <= code.expected_bytes + code.expected_bytes / 100 + 64);
    BOOST_TEST(length + length / 100 + 64 >= code.expected_bytes);
  }
}

BOOST_AUTO_TEST_CASE(nothing_changed_takes_a_few_bytes) {
  const StepKind kind = codec::step_kind(DType::bf16).value();
  const Pair pair = moved(kind, 200000, 0, 1, true);
  BOOST_TEST(codec::step_encode(kind, pair.base, pair.next).size() < 60);
}

// Half of the elements are small and move by one, in one direction or the other.
BOOST_AUTO_TEST_CASE(tables_follow_the_exponents) {
  const StepKind kind = codec::step_kind(DType::bf16).value();
  Codes base, next;
  std::mt19937 random(3);
  for (int i = 0; i < 40000; ++i) {
    const bool small = i % 2 == 0;
    base.push_back(static_cast<std::uint16_t>((small ? 0x3800 : 0x3c00) | (random() & 0x7f)));
    next.push_back(static_cast<std::uint16_t>(base.back() + (small ? 2 * (random() % 2) - 1 : 0)));
  }
  // One bit for each small weight, and nothing for the others.
  const std::size_t length =
      codec::step_encode(kind, bytes_of(kind, base), bytes_of(kind, next)).size();
  BOOST_TEST(length < 40000 / 2 / 8 * 1.15);
}

BOOST_AUTO_TEST_SUITE_END()
