#include "spiking/short_term.h"

#include <cmath>

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(short_term_plasticity)

BOOST_AUTO_TEST_CASE(a_rested_synapse_spends_its_share_and_recovers_exponentially) {
  const ShortTermParameters parameters;
  ShortTermState state(1, parameters);
  const ShortTerm synapse(parameters);
  std::vector<std::uint8_t> spikes{1};
  std::vector<Spike> out;
  synapse.step(state, spikes, {0, 1}, out);
  const double used = 0.4 + 0.4 * (1 - 0.4);
  BOOST_REQUIRE(out.size() == 1u);
  BOOST_TEST(static_cast<double>(out[0].efficacy) == used, boost::test_tools::tolerance(1e-5));

  spikes[0] = 0;
  for (int k = 1; k <= 400; ++k) {
    synapse.step(state, spikes, {0, 1}, out);
    BOOST_TEST(static_cast<double>(state.x[0]) == 1 - used * std::exp(-k / 200.0),
               boost::test_tools::tolerance(1e-4));
  }
  BOOST_TEST(out.size() == 1u);
}

BOOST_AUTO_TEST_CASE(spikes_in_a_row_tire_the_synapse) {
  const ShortTermParameters parameters;
  ShortTermState state(1, parameters);
  const ShortTerm synapse(parameters);
  const std::vector<std::uint8_t> spikes{1};
  std::vector<Spike> out;
  for (int k = 0; k < 10; ++k) synapse.step(state, spikes, {0, 1}, out);
  for (std::size_t k = 1; k < out.size(); ++k) BOOST_TEST(out[k].efficacy < out[k - 1].efficacy);
  BOOST_TEST(state.x[0] > 0.0f);
}

BOOST_AUTO_TEST_SUITE_END()
