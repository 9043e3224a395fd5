#include "spiking/projection.h"

#include <algorithm>

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(projection)

namespace {

/// Neuron 0 reaches neurons 1 and 3, neuron 1 none, neuron 2 neuron 3.
Projection small_projection(bool delayed) {
  const std::uint32_t pointers[] = {0, 2, 2, 3};
  const std::uint32_t columns[] = {1, 3, 3};
  const float weights[] = {1, 2, 4};
  const std::uint8_t delays[] = {1, kMaxDelay, 5};
  Projection projection;
  projection.weights = CsrMatrix<float>(3, 4, 3);
  std::ranges::copy(pointers, projection.weights.row_pointers().begin());
  std::ranges::copy(columns, projection.weights.column_indices().begin());
  std::ranges::copy(weights, projection.weights.values().begin());
  if (delayed) {
    projection.delays.emplace(3, 4, 3);
    std::ranges::copy(delays, projection.delays->values().begin());
  }
  return projection;
}

/// What arrives at neuron `target` in each of the steps after `step`, consuming it.
std::vector<float> arrivals(DelayRing& ring, std::uint64_t step, std::size_t target) {
  std::vector<float> seen;
  for (std::uint32_t k = 1; k <= kMaxDelay; ++k) {
    float& sum = ring.arriving(step + k)[target];
    seen.push_back(sum);
    sum = 0;
  }
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_spike_arrives_once_after_its_delay) {
  const Projection projection = small_projection(true);
  DelayRing ring(4);
  const Spike spikes[] = {{0, 0.5f}, {2, 1}};
  for (const std::uint64_t step : {1u, 2u, 15u, 16u, 17u, 1000003u}) {
    deliver(projection, spikes, step, ring, {0, 4});
    std::vector<float> to_1(kMaxDelay);
    std::vector<float> to_3(kMaxDelay);
    to_1[0] = 0.5f;
    to_3[kMaxDelay - 1] = 1;
    to_3[4] = 4;
    BOOST_TEST(arrivals(ring, step, 1) == to_1, boost::test_tools::per_element());
    BOOST_TEST(arrivals(ring, step, 3) == to_3, boost::test_tools::per_element());
    BOOST_TEST(std::ranges::count(ring.all(), 0.0f) == ring.all().size());
  }
}

BOOST_AUTO_TEST_CASE(without_delays_all_arrives_in_the_next_step) {
  DelayRing ring(4);
  const Spike spikes[] = {{0, 1}, {2, 1}};
  deliver(small_projection(false), spikes, 7, ring, {0, 4});
  BOOST_TEST(ring.arriving(8)[1] == 1.0f);
  BOOST_TEST(ring.arriving(8)[3] == 6.0f);
}

BOOST_AUTO_TEST_CASE(only_the_targets_asked_for_are_reached) {
  DelayRing ring(4);
  const Spike spikes[] = {{0, 1}, {1, 1}, {2, 1}};
  deliver(small_projection(false), spikes, 0, ring, {0, 3});
  BOOST_TEST(ring.arriving(1)[1] == 1.0f);
  BOOST_TEST(ring.arriving(1)[3] == 0.0f);
  deliver(small_projection(false), spikes, 0, ring, {3, 4});
  BOOST_TEST(ring.arriving(1)[1] == 1.0f);
  BOOST_TEST(ring.arriving(1)[3] == 6.0f);
}

BOOST_AUTO_TEST_CASE(dense_pathway_adds_rows_of_the_neurons_it_has) {
  const DensePathway dense{2, 3, {1, 2, 3, 10, 20, 30}};
  DelayRing ring(5);
  const Spike spikes[] = {{0, 1}, {1, 0.5f}, {2, 1}};
  deliver(dense, spikes, 0, ring, {0, 5});
  const std::vector<float> expected{6, 12, 18, 0, 0};
  BOOST_TEST(ring.arriving(1) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(memory_layout_is_that_of_the_file) {
  const Projection projection = small_projection(true);
  const auto weights = projection.weights.bytes();
  BOOST_TEST(weights.size() == (4 + 3 + 3) * 4u);
  BOOST_TEST(static_cast<const void*>(weights.data()) ==
             static_cast<const void*>(projection.weights.row_pointers().data()));
  BOOST_TEST(static_cast<const void*>(projection.weights.values().data()) ==
             static_cast<const void*>(weights.data() + 28));
  BOOST_TEST(projection.delays->bytes().size() == (4 + 3) * 4u + 3u);
}

BOOST_AUTO_TEST_CASE(indices_out_of_order_or_bounds_are_noticed) {
  using Indices = std::vector<std::uint32_t>;
  const Indices pointers{0, 2, 2, 3};
  BOOST_TEST(is_well_formed(pointers, Indices{1, 3, 3}, 4));
  BOOST_TEST(!is_well_formed(pointers, Indices{1, 3, 3}, 3));
  BOOST_TEST(!is_well_formed(pointers, Indices{3, 1, 3}, 4));
  BOOST_TEST(!is_well_formed(pointers, Indices{3, 3, 3}, 4));
  BOOST_TEST(!is_well_formed(pointers, Indices{1, 3}, 4));
  BOOST_TEST(!is_well_formed(Indices{0, 3, 2, 3}, Indices{0, 1, 2}, 4));
  BOOST_TEST(!is_well_formed(Indices{1, 2, 2, 3}, Indices{0, 1, 2}, 4));
  BOOST_TEST(!is_well_formed(Indices{}, Indices{}, 4));
}

BOOST_AUTO_TEST_SUITE_END()
