#include "state/tensor/dense_pieces.h"

#include <cstdint>

#include "boost_test.h"

using namespace thalia;
using thalia::state::DensePieces;

BOOST_AUTO_TEST_SUITE(dense_pieces)

namespace {

// That the pieces, one after the other, are all elements in row-major order.
void check(const Shape& shape, std::uint64_t largest) {
  const DensePieces pieces(shape, largest);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < pieces.count(); ++i) {
    const DensePieces::Piece piece = pieces[i];
    BOOST_TEST(piece.first == next);
    BOOST_TEST(piece.elements >= 1u);
    BOOST_TEST(piece.elements <= largest);
    std::uint64_t first = 0;
    std::uint64_t elements = 1;
    bool cut = false;
    for (unsigned d = 0; d < shape.rank(); ++d) {
      const auto [begin, end] = piece.ranges[d];
      BOOST_REQUIRE(begin < end);
      BOOST_REQUIRE(end <= shape[d]);
      // After the first dimension of which more than one index is taken all are taken whole.
      BOOST_TEST((!cut || (begin == 0 && end == shape[d])));
      cut = cut || end - begin > 1;
      first = first * shape[d] + begin;
      elements *= end - begin;
    }
    BOOST_TEST(first == piece.first);
    BOOST_TEST(elements == piece.elements);
    next += piece.elements;
  }
  BOOST_TEST(next == shape.element_count().value());
}

}  // namespace

BOOST_AUTO_TEST_CASE(pieces_make_up_the_whole) {
  for (const std::uint64_t largest : {1, 2, 3, 5, 6, 7, 24, 25, 1000}) {
    check({}, largest);
    check({7}, largest);
    check({1, 1, 9}, largest);
    check({9, 1, 1}, largest);
    check({2, 3, 4}, largest);
    check({5, 1, 3, 2}, largest);
    check({0}, largest);
    check({4, 0, 2}, largest);
  }
}

BOOST_AUTO_TEST_CASE(pieces_are_as_large_as_they_may_be) {
  BOOST_TEST(DensePieces({2, 3, 4}, 24).count() == 1u);
  BOOST_TEST(DensePieces({2, 3, 4}, 12).count() == 2u);
  BOOST_TEST(DensePieces({2, 3, 4}, 11).count() == 4u);
  BOOST_TEST(DensePieces({2, 1ull << 40}, 1 << 20).count() == 2ull << 20);
  BOOST_TEST(DensePieces({1ull << 40, 2}, 1 << 20).count() == 1ull << 21);
}

BOOST_AUTO_TEST_SUITE_END()
