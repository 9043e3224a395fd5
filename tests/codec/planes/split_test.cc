#include "codec/planes/split.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "boost_test.h"
#include "codec/planes/split_kernels.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/types.h"

using namespace thalia;
using codec::VectorSet;
using test::hex;
using test::random_bytes;
using test::same_bytes;

BOOST_AUTO_TEST_SUITE(byte_planes)

namespace {

using Bytes = std::vector<std::byte>;
using Filter = void (*)(std::size_t width, ByteSpan, MutableByteSpan, VectorSet);

std::vector<VectorSet> present_sets() {
  std::vector<VectorSet> sets;
  for (const VectorSet set : codec::kVectorSets)
    if (codec::has_vector_set(set)) sets.push_back(set);
  return sets;
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

// At an address of any remainder, and with bytes around the result that must stay.
Bytes filtered(Filter filter, std::size_t width, ByteSpan in, VectorSet set,
               std::size_t misalignment = 0) {
  constexpr std::size_t kMargin = 64;
  Bytes from(in.size() + misalignment), to(in.size() + misalignment + 2 * kMargin, std::byte{0xA5});
  std::copy(in.begin(), in.end(), from.begin() + static_cast<std::ptrdiff_t>(misalignment));
  const auto out = MutableByteSpan(to).subspan(kMargin + misalignment, in.size());
  filter(width, ByteSpan(from).subspan(misalignment), out, set);
  const Bytes result(out.begin(), out.end());
  std::fill(out.begin(), out.end(), std::byte{0xA5});
  BOOST_TEST((to == Bytes(to.size(), std::byte{0xA5})));
  return result;
}

// Straight from docs/format/format.md.
Bytes planes_by_definition(std::size_t width, ByteSpan raw) {
  Bytes out(raw.begin(), raw.end());
  const std::size_t n = raw.size() / width;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < width; ++k) out[k * n + i] = raw[i * width + k];
  return out;
}
Bytes differences_by_definition(std::size_t width, ByteSpan raw) {
  Bytes differences(raw.begin(), raw.end());
  for (std::size_t i = 1; i < raw.size() / width; ++i) {
    unsigned borrow = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const unsigned at = std::to_integer<unsigned>(raw[i * width + k]);
      const unsigned before = std::to_integer<unsigned>(raw[(i - 1) * width + k]);
      const unsigned difference = at - before - borrow;
      differences[i * width + k] = static_cast<std::byte>(difference);
      borrow = difference >> 31;
    }
  }
  return planes_by_definition(width, differences);
}

}  // namespace

BOOST_AUTO_TEST_CASE(known_answers) {
  for (const VectorSet set : present_sets()) {
    const Bytes pairs = bytes_of({0xAA, 0x11, 0xBB, 0x22, 0xCC, 0x33});
    BOOST_TEST(hex(filtered(codec::split_planes, 2, pairs, set)) == "aabbcc112233");
    const Bytes odd = bytes_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    BOOST_TEST(hex(filtered(codec::split_planes, 4, odd, set)) == "0105020603070408090a");
    // 5, 3, 0x01000000 less what is before each; the tail stays.
    const Bytes words = bytes_of({5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 0x77});
    BOOST_TEST(hex(filtered(codec::split_difference_planes, 4, words, set)) ==
               "05fefd00ffff00ffff00ff0077");
  }
}

BOOST_AUTO_TEST_CASE(every_length_and_set_agrees_with_the_definition) {
  for (const std::size_t width : {2, 4, 8}) {
    for (std::size_t length = 0; length <= 300; ++length) {
      const Bytes raw = random_bytes(length, length + 1);
      const Bytes expected = planes_by_definition(width, raw);
      for (const VectorSet set : present_sets()) {
        const std::size_t misalignment = length % 67;
        BOOST_TEST((filtered(codec::split_planes, width, raw, set, misalignment) == expected));
        BOOST_TEST((filtered(codec::join_planes, width, expected, set, misalignment) == raw));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(differences_of_every_length_and_set_agree_with_the_definition) {
  for (const std::size_t width : {4, 8}) {
    for (std::size_t length = 0; length <= 300; ++length) {
      const Bytes raw = random_bytes(length, length + 1);
      const Bytes expected = differences_by_definition(width, raw);
      for (const VectorSet set : present_sets()) {
        const std::size_t misalignment = length % 67;
        BOOST_TEST(
            (filtered(codec::split_difference_planes, width, raw, set, misalignment) == expected));
        BOOST_TEST(
            (filtered(codec::join_difference_planes, width, expected, set, misalignment) == raw));
      }
    }
  }
}

// Words that span several blocks of the pass over differences.
BOOST_AUTO_TEST_CASE(long_inputs_agree_with_the_definition) {
  const Bytes raw = random_bytes(40003);
  for (const VectorSet set : present_sets()) {
    for (const std::size_t width : {2, 4, 8}) {
      const Bytes planes = planes_by_definition(width, raw);
      BOOST_TEST((filtered(codec::split_planes, width, raw, set) == planes));
      BOOST_TEST((filtered(codec::join_planes, width, planes, set) == raw));
      if (width == 2) continue;
      const Bytes differences = differences_by_definition(width, raw);
      BOOST_TEST((filtered(codec::split_difference_planes, width, raw, set) == differences));
      BOOST_TEST((filtered(codec::join_difference_planes, width, differences, set) == raw));
    }
  }
}

// A bf16 of 1.0 is 0x3F80: exponent 127 and sign 0. In -1.0 the sign ends in the lowest bit.
BOOST_AUTO_TEST_CASE(rotation_makes_the_exponent_a_byte) {
  const Bytes ones = bytes_of({0x80, 0x3F, 0x80, 0xBF});
  for (const VectorSet set : present_sets()) {
    Bytes low(2), high(2), back(4);
    std::byte* const planes[] = {low.data(), high.data()};
    const codec::PlaneKernels::Pair& pair = codec::plane_kernels(set).of(2, true);
    pair.split(ones.data(), 2, planes);
    BOOST_TEST(hex(low) == "0001");
    BOOST_TEST(hex(high) == "7f7f");
    pair.join(planes, 2, back.data());
    BOOST_TEST((back == ones));
  }
}

BOOST_AUTO_TEST_CASE(rotated_planes_come_back_and_are_the_same_from_each_set) {
  for (const std::size_t width : {2, 4, 8}) {
    for (std::size_t count = 0; count <= 200; ++count) {
      const Bytes raw = random_bytes(count * width, count + 1);
      std::vector<Bytes> expected;
      for (const VectorSet set : present_sets()) {
        const codec::PlaneKernels::Pair& pair = codec::plane_kernels(set).of(width, true);
        std::vector<Bytes> planes(width, Bytes(count));
        std::vector<std::byte*> pointers;
        for (Bytes& plane : planes) pointers.push_back(plane.data());
        pair.split(raw.data(), count, pointers.data());
        if (expected.empty()) expected = planes;
        BOOST_TEST((planes == expected));
        Bytes back(raw.size());
        pair.join(pointers.data(), count, back.data());
        BOOST_TEST(same_bytes(back, raw));
      }
    }
  }
}

// The public names of the same.
BOOST_AUTO_TEST_CASE(bytes_are_grouped_and_differ_from_a_base) {
  const Bytes raw = random_bytes(1003, 7);
  for (const std::size_t width : {2u, 4u, 8u}) {
    Bytes grouped(raw.size()), back(raw.size()), expected(raw.size());
    group_bytes(width, raw, grouped);
    codec::split_planes(width, raw, expected);
    BOOST_TEST(same_bytes(grouped, expected));
    ungroup_bytes(width, grouped, back);
    BOOST_TEST(same_bytes(back, raw));
    BOOST_CHECK_EXCEPTION(group_bytes(width, raw, MutableByteSpan(back).first(5)), UsageError,
                          test::has_code(ErrorCode::size_mismatch));
  }
  Bytes out(raw.size());
  BOOST_CHECK_EXCEPTION(ungroup_bytes(3, raw, out), UsageError,
                        test::says(ErrorCode::bad_argument, "width", "2, 4 or 8"));
  Bytes changed = raw;
  changed[500] ^= std::byte{9};
  xor_bytes(changed, raw);
  BOOST_TEST((std::count(changed.begin(), changed.end(), std::byte{0}) == 1002));
  BOOST_TEST((changed[500] == std::byte{9}));
  xor_bytes(changed, raw);
  changed[500] ^= std::byte{9};
  BOOST_TEST(same_bytes(changed, raw));
  BOOST_CHECK_EXCEPTION(xor_bytes(changed, ByteSpan(raw).first(3)), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
