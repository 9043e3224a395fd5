#include <cstdint>

#include "boost_test.h"
#include "thalia/text.h"

using thalia::human_bytes;

BOOST_AUTO_TEST_SUITE(human_sizes)

BOOST_AUTO_TEST_CASE(sizes_round_to_one_decimal) {
  BOOST_TEST(human_bytes(0) == "0 B");
  BOOST_TEST(human_bytes(1023) == "1023 B");
  BOOST_TEST(human_bytes(1536) == "1.5 KiB");
  BOOST_TEST(human_bytes(1048575) == "1.0 MiB");
  BOOST_TEST(human_bytes(~std::uint64_t{0}) == "16.0 EiB");
}

BOOST_AUTO_TEST_SUITE_END()
