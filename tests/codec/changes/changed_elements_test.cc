#include "codec/changes/changed_elements.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "boost_test.h"
#include "thalia/types.h"

using namespace thalia;
using codec::VectorSet;

BOOST_AUTO_TEST_SUITE(changed_elements)

namespace {

using Bytes = std::vector<std::byte>;

struct Found {
  std::vector<std::uint16_t> positions;
  Bytes values;

  friend bool operator==(const Found&, const Found&) = default;
};

// Into memory of exactly the room that is asked for, which a sanitizer watches.
Found found(ByteSpan base, ByteSpan now, unsigned width, VectorSet set) {
  const std::size_t elements = now.size() / width;
  Bytes positions(elements * 2 + codec::kChangedSlack);
  Bytes values(now.size() + codec::kChangedSlack);
  auto* const numbers = reinterpret_cast<std::uint16_t*>(positions.data());
  const std::size_t count =
      codec::find_changed(base, now, width, {.positions = numbers, .values = values.data()}, set);
  values.resize(count * width);
  return {{numbers, numbers + count}, std::move(values)};
}

Found by_definition(ByteSpan base, ByteSpan now, unsigned width) {
  Found out;
  for (std::size_t at = 0; at < now.size(); at += width) {
    if (std::equal(&base[at], &base[at] + width, &now[at])) continue;
    out.positions.push_back(static_cast<std::uint16_t>(at / width));
    out.values.insert(out.values.end(), &now[at], &now[at] + width);
  }
  return out;
}

// A block of `elements` at addresses of any remainder, of which one in `one_in` differs in one bit.
void check(std::size_t elements, unsigned width, std::size_t one_in, std::mt19937_64& random) {
  const std::size_t size = elements * width;
  const std::size_t base_at = random() % 64, now_at = random() % 64;
  Bytes base(base_at + size), now(now_at + size);
  for (std::size_t i = 0; i < size; ++i)
    base[base_at + i] = now[now_at + i] = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < elements; ++i) {
    if (one_in != 0 && random() % one_in == 0)
      now[now_at + i * width + random() % width] ^= std::byte{1} << random() % 8;
  }
  const ByteSpan before = ByteSpan(base).subspan(base_at), after = ByteSpan(now).subspan(now_at);
  const Found expected = by_definition(before, after, width);
  if (one_in == 0) BOOST_TEST(expected.positions.empty());
  if (one_in == 1) BOOST_TEST(expected.positions.size() == elements);
  for (const VectorSet set : codec::kVectorSets) {
    if (!codec::has_vector_set(set)) continue;
    BOOST_TEST_CONTEXT(elements << " elements of " << width << " bytes, one in " << one_in
                                << ", set " << static_cast<int>(set)) {
      BOOST_TEST((found(before, after, width, set) == expected));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_set_finds_the_elements_that_differ_in_any_bit) {
  std::mt19937_64 random(1);
  for (const unsigned width : {1u, 2u, 4u, 8u, 16u}) {
    for (std::size_t elements = 0; elements < 150; ++elements) {
      for (const std::size_t one_in : {0u, 1u, 2u, 20u}) check(elements, width, one_in, random);
    }
    for (const std::size_t one_in : {0u, 1u, 3u, 20u, 1000u, 100'000u}) {
      check(codec::kMostCompared, width, one_in, random);
      check(codec::kMostCompared - 1, width, one_in, random);
    }
  }
}

// Bits count, and not values: as numbers the first pair is equal, and the second is not.
BOOST_AUTO_TEST_CASE(negative_zero_differs_from_zero_and_a_nan_is_equal_to_itself) {
  const std::uint32_t before[] = {0x00000000, 0x7FC00001, 0x7FC00001, 0x3F800000};
  const std::uint32_t now[] = {0x80000000, 0x7FC00001, 0x7FC00002, 0x3F800000};
  for (const VectorSet set : codec::kVectorSets) {
    if (!codec::has_vector_set(set)) continue;
    const Found out =
        found(std::as_bytes(std::span(before)), std::as_bytes(std::span(now)), 4, set);
    BOOST_TEST((out.positions == std::vector<std::uint16_t>{0, 2}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
