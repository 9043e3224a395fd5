#include "spiking/network.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "boost_test.h"
#include "spiking/build.h"
#include "support/sanitizers.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(network)

namespace {

SpikeLog run(Network& network, unsigned threads, int steps) {
  Workers workers(threads);
  Simulator simulator(network, workers);
  SpikeLog log;
  for (int i = 0; i < steps; ++i) log.push_back(simulator.step());
  return log;
}

SpikeLog build_and_run(std::uint32_t neurons, std::uint64_t seed, unsigned threads, int steps) {
  Workers workers(threads);
  Network network = build_network(neurons, seed, workers);
  return run(network, threads, steps);
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(region_sizes_add_up) {
  for (const std::uint32_t neurons : {200u, 201u, 999u, 100000u, 1234567u, 4000000000u}) {
    const auto sizes = region_sizes(neurons);
    BOOST_TEST(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == neurons);
    BOOST_TEST(*std::ranges::min_element(sizes) >= 10u);
  }
}

BOOST_AUTO_TEST_CASE(too_few_neurons_are_refused) {
  Workers workers(1);
  BOOST_CHECK_THROW(build_network(kMinNeurons - 1, 1, workers), std::invalid_argument);
  BOOST_TEST(build_network(kMinNeurons, 1, workers).neurons() == kMinNeurons);
}

BOOST_AUTO_TEST_CASE(matrices_are_well_formed) {
  Workers workers(2);
  for (const std::uint32_t neurons : {200u, 3001u}) {
    const Network network = build_network(neurons, 5, workers);
    for (const Pathway& pathway : network.pathways) {
      const auto& matrix = pathway.sparse.weights;
      const auto pointers = matrix.row_pointers();
      const auto columns = matrix.column_indices();
      BOOST_TEST(pointers.front() == 0u);
      BOOST_TEST(pointers.back() == matrix.nnz());
      for (std::uint32_t row = 0; row < matrix.rows(); ++row) {
        BOOST_REQUIRE(pointers[row] < pointers[row + 1]);
        const auto begin = columns.begin() + pointers[row];
        const auto end = columns.begin() + pointers[row + 1];
        BOOST_REQUIRE(std::adjacent_find(begin, end, std::greater_equal()) == end);
        BOOST_REQUIRE(*(end - 1) < matrix.columns());
      }
      for (const std::uint8_t delay : pathway.sparse.delays->values())
        BOOST_REQUIRE((delay >= 1 && delay <= kMaxDelay));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_network_has_the_same_bits_however_many_threads_build_it) {
  Workers one(1);
  Workers three(3);
  const Network a = build_network(2000, 9, one);
  const Network b = build_network(2000, 9, three);
  for (std::size_t r = 0; r < a.regions.size(); ++r) {
    BOOST_TEST(
        same_bytes(a.regions[r].recurrent.weights.bytes(), b.regions[r].recurrent.weights.bytes()));
  }
  for (std::size_t p = 0; p < a.pathways.size(); ++p) {
    BOOST_TEST(
        same_bytes(a.pathways[p].sparse.weights.bytes(), b.pathways[p].sparse.weights.bytes()));
    BOOST_TEST(
        same_bytes(a.pathways[p].sparse.delays->bytes(), b.pathways[p].sparse.delays->bytes()));
    BOOST_TEST(a.pathways[p].dense.weights == b.pathways[p].dense.weights);
  }
}

BOOST_AUTO_TEST_CASE(spikes_do_not_depend_on_the_number_of_threads) {
  const SpikeLog log = build_and_run(2000, 3, 1, 120);
  BOOST_TEST(total_spikes(log) > 0u);
  BOOST_TEST((build_and_run(2000, 3, 2, 120) == log));
  BOOST_TEST((build_and_run(2000, 3, 5, 120) == log));
  BOOST_TEST((build_and_run(2000, 4, 1, 120) != log));
}

BOOST_AUTO_TEST_CASE(every_region_fires_at_a_living_rate) {
  if (thalia::test::kSanitized)
    return;  // a rate takes many steps, and they are the same ones as above
  Workers workers(2);
  Network network = build_network(5000, 1, workers);
  Simulator simulator(network, workers);
  std::vector<std::uint64_t> spikes(network.regions.size());
  constexpr int kSteps = 1000;
  for (int i = 0; i < kSteps; ++i) {
    simulator.step();
    for (std::size_t r = 0; r < spikes.size(); ++r) spikes[r] += simulator.spikes(r).size();
  }
  for (std::size_t r = 0; r < spikes.size(); ++r) {
    const double hz = static_cast<double>(spikes[r]) / network.regions[r].size;
    BOOST_TEST_CONTEXT(network.regions[r].plan.name << " at " << hz << " Hz") {
      BOOST_TEST(hz > 1.0);
      BOOST_TEST(hz < 30.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_spikes_tell_of_one_neuron_that_started_differently) {
  Workers workers(1);
  Network network = build_network(2000, 3, workers);
  network.regions[1].lif.membrane[17] = -80;
  const SpikeLog changed = run(network, 1, 120);
  BOOST_TEST((first_difference(changed, build_and_run(2000, 3, 1, 120)).has_value()));
}

BOOST_AUTO_TEST_SUITE_END()
