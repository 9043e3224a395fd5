#include "spiking/random.h"

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(random_numbers)

// Known answers: kat_vectors of the authors' Random123 library, "philox4x32 10".
BOOST_AUTO_TEST_CASE(philox_gives_the_published_answers) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  BOOST_TEST(
      (philox({0, 0, 0, 0}, {0, 0}) == Random4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  BOOST_TEST((philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
              Random4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Random4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(streams_and_objects_differ) {
  const Random4 here = Random(7, Stream::noise, 1).at(3, 4);
  BOOST_TEST((Random(7, Stream::degree, 1).at(3, 4) != here));
  BOOST_TEST((Random(7, Stream::noise, 2).at(3, 4) != here));
  BOOST_TEST((Random(8, Stream::noise, 1).at(3, 4) != here));
  BOOST_TEST((Random(7 + (std::uint64_t{1} << 32), Stream::noise, 1).at(3, 4) != here));
  BOOST_TEST((Random(7, Stream::noise, 1).at(3, 4) == here));
}

BOOST_AUTO_TEST_CASE(ranges_hold_at_their_ends) {
  BOOST_TEST(unit_float(0) == 0.0f);
  BOOST_TEST(unit_float(0xffffffff) < 1.0f);
  BOOST_TEST(below(0, 5) == 0u);
  BOOST_TEST(below(0xffffffff, 5) == 4u);
  BOOST_TEST(below(0x80000000, 0xffffffff) == 0x7fffffffu);
}

BOOST_AUTO_TEST_SUITE_END()
