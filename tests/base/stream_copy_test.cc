#include "base/stream_copy.h"

#include <algorithm>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(stream_copy_suite)

BOOST_AUTO_TEST_CASE(copies_exactly_its_bytes_from_and_to_any_address) {
  const std::vector<std::byte> source = random_bytes(1000);
  for (const std::size_t from : {0u, 1u, 63u}) {
    for (std::size_t to = 0; to < 130; ++to) {
      for (const std::size_t length : {0u, 1u, 15u, 63u, 64u, 65u, 200u, 700u}) {
        std::vector<std::byte> target(1000, std::byte{0xa5});
        std::vector<std::byte> expected = target;
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        stream_copy(ByteSpan(source).subspan(from, length), target.data() + to);
        fence_stream_copies();
        BOOST_TEST_REQUIRE(bool(target == expected),
                           length << " bytes from " << from << " to " << to);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(copies_many_pages) {
  const std::vector<std::byte> source = random_bytes(100'000);
  for (const std::size_t to : {0u, 1u, 64u}) {
    for (const std::size_t length : {16383u, 16384u, 16447u, 16448u, 32768u, 65536u + 77u}) {
      std::vector<std::byte> target(100'000, std::byte{0xa5});
      std::vector<std::byte> expected = target;
      std::copy_n(source.begin() + 3, length, expected.begin() + static_cast<std::ptrdiff_t>(to));
      stream_copy(ByteSpan(source).subspan(3, length), target.data() + to);
      fence_stream_copies();
      BOOST_TEST_REQUIRE(bool(target == expected), length << " bytes to " << to);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
