#include "spiking/neuron.h"

#include <cmath>

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(neuron)

namespace {

/// One neuron whose input, gain and threshold a test sets.
struct OneNeuron {
  LifParameters parameters;
  LifState state{1};
  std::vector<float> arriving{0};
  std::vector<float> scaling{1};
  std::vector<float> threshold{1e9f};
  std::vector<float> drive{0};

  void step() { Lif(parameters).step(state, arriving, scaling, threshold, drive, {0, 1}); }
  float membrane() const { return state.membrane[0]; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(membrane_decays_to_rest_as_the_closed_form_says) {
  OneNeuron one;
  one.state.membrane[0] = -50;
  for (int k = 1; k <= 200; ++k) {
    one.step();
    const double exact = -65 + 15 * std::exp(-k / 20.0);
    BOOST_TEST(static_cast<double>(one.membrane()) == exact, boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(constant_drive_charges_the_membrane_as_the_closed_form_says) {
  OneNeuron one;
  one.state.membrane[0] = -65;
  one.drive[0] = 12;
  for (int k = 1; k <= 200; ++k) {
    one.step();
    const double exact = -65 + 12 * (1 - std::exp(-k / 20.0));
    BOOST_TEST(static_cast<double>(one.membrane()) == exact, boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(synaptic_current_decays_and_input_is_scaled_and_consumed) {
  OneNeuron one;
  one.arriving[0] = 3;
  one.scaling[0] = 0.5f;
  one.step();
  BOOST_TEST(one.state.current[0] == 1.5f);
  BOOST_TEST(one.arriving[0] == 0.0f);
  for (int k = 1; k <= 20; ++k) {
    one.step();
    BOOST_TEST(static_cast<double>(one.state.current[0]) == 1.5 * std::exp(-k / 5.0),
               boost::test_tools::tolerance(1e-5));
  }
}

BOOST_AUTO_TEST_CASE(a_spike_resets_the_membrane_for_the_refractory_steps) {
  OneNeuron one;
  one.threshold[0] = -50;
  one.drive[0] = 400;
  one.step();
  BOOST_TEST(int{one.state.spikes[0]} == 1);
  BOOST_TEST(one.membrane() == -65.0f);
  for (int k = 0; k < one.parameters.refractory_steps; ++k) {
    one.step();
    BOOST_TEST(int{one.state.spikes[0]} == 0);
    BOOST_TEST(one.membrane() == -65.0f);
  }
  one.step();
  BOOST_TEST(int{one.state.spikes[0]} == 1);
}

// Rate of a driven neuron: refractory time + tau ln(drive / (drive - threshold)), rounded up to
// steps.
BOOST_AUTO_TEST_CASE(a_driven_neuron_fires_at_the_rate_that_follows) {
  OneNeuron one;
  one.threshold[0] = -50;
  one.drive[0] = 20;
  one.state.membrane[0] = -65;
  const int charging = static_cast<int>(std::ceil(20 * std::log(20.0 / (20.0 - 15.0))));
  int last = 0;
  int spikes = 0;
  for (int k = 1; k <= 1000; ++k) {
    one.step();
    if (one.state.spikes[0] == 0) continue;
    if (spikes++ > 0) BOOST_TEST(k - last == charging + one.parameters.refractory_steps);
    last = k;
  }
  BOOST_TEST(spikes == 1000 / (charging + one.parameters.refractory_steps));
}

BOOST_AUTO_TEST_SUITE_END()
