#include "io/file/read_ahead.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "boost_test.h"

using thalia::io::ReadAhead;

BOOST_AUTO_TEST_SUITE(read_ahead)

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

}  // namespace

BOOST_AUTO_TEST_CASE(a_walk_is_asked_for_in_front_of_it_and_never_twice) {
  ReadAhead ahead;
  std::uint64_t asked = 64 * kMiB;
  for (std::uint64_t at = asked; at < 512 * kMiB; at += 2 * kMiB) {
    const ReadAhead::Extent extent = ahead.before(at, 2 * kMiB);
    if (extent.length() > 0) {
      BOOST_TEST_REQUIRE(extent.begin == asked);
      asked = extent.end;
    }
    BOOST_TEST_REQUIRE(asked >= at + 2 * kMiB);
    BOOST_TEST_REQUIRE(asked <= at + 2 * kMiB + ReadAhead::kMost);
    // As much again as was read, at first; half of the most at any time later.
    BOOST_TEST_REQUIRE((at < 128 * kMiB || asked >= at + 2 * kMiB + ReadAhead::kMost / 2));
  }
}

BOOST_AUTO_TEST_CASE(threads_may_take_turns) {
  ReadAhead ahead;
  std::vector<bool> asked(1000);
  std::uint64_t furthest = 0;
  for (std::uint64_t four = 0; four < 64; four += 4) {
    for (const std::uint64_t part : {four + 3, four + 1, four, four + 2}) {
      const ReadAhead::Extent extent = ahead.before(part * kMiB, kMiB);
      for (std::uint64_t at = extent.begin; at < extent.end; at += kMiB) asked[at / kMiB] = true;
      furthest = std::max(furthest, extent.end);
    }
    for (std::uint64_t part = 0; part < four + 4; ++part) BOOST_TEST_REQUIRE(asked[part]);
  }
  BOOST_TEST(furthest > 64 * kMiB);
}

BOOST_AUTO_TEST_CASE(reads_here_and_there_ask_for_themselves_alone) {
  ReadAhead ahead;
  for (std::uint64_t i = 1; i < 100; ++i) {
    const std::uint64_t at = i * 37 % 100 * 1024 * kMiB;
    const ReadAhead::Extent extent = ahead.before(at, kMiB);
    BOOST_TEST(extent.begin == at);
    BOOST_TEST(extent.length() == kMiB);
    // Few bytes are left to page faults.
    BOOST_TEST(ahead.before(at + 3 * 1024 * kMiB + 5, 4096).length() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(at_least_half_of_what_is_asked_for_is_read) {
  for (const std::uint64_t length : {std::uint64_t{100}, 4096 + kMiB / 7, 3 * kMiB}) {
    for (const std::uint64_t gap : {std::uint64_t{0}, length / 2, 7 * length, 100 * length}) {
      ReadAhead ahead;
      std::uint64_t asked = 0;
      for (std::uint64_t read = 1; read <= 4000; ++read) {
        asked += ahead.before(read * (length + gap), length).length();
        BOOST_TEST_REQUIRE(asked <= 2 * read * length);
      }
      BOOST_TEST((asked > 0 || length + gap > 100));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
