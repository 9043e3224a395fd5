#include "spiking/plasticity.h"

#include <cmath>

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(plasticity)

namespace {

/// One synapse from neuron 0 of one population to neuron 0 of another.
struct OneSynapse {
  PlasticityParameters parameters;
  Projection projection;
  LearningState source{1};
  LearningState target{1};

  explicit OneSynapse(float weight) {
    projection.weights = CsrMatrix<float>(1, 1, 1);
    projection.weights.row_pointers()[0] = 0;
    projection.weights.row_pointers()[1] = 1;
    projection.weights.column_indices()[0] = 0;
    projection.weights.values()[0] = weight;
    projection.eligibility = {0};
  }
  void spike(std::uint32_t step, float dopamine) {
    const Spike spikes[] = {{0, 1}};
    Plasticity(parameters).learn(projection, spikes, step, source, target, dopamine, {0, 1});
    Plasticity::note_spikes(source, spikes, step);
  }
  float weight() const { return projection.weights.values()[0]; }
  float mark() const { return projection.eligibility[0]; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(activity_above_the_sliding_threshold_strengthens_and_below_weakens) {
  OneSynapse busy(1);
  busy.target.trace[0] = 0.5f;
  busy.spike(1, 1);
  BOOST_TEST(busy.weight() > 1.0f);

  OneSynapse quiet(1);
  quiet.target.trace[0] = 0.05f;
  quiet.spike(1, 1);
  BOOST_TEST(quiet.weight() < 1.0f);
}

BOOST_AUTO_TEST_CASE(without_dopamine_a_synapse_is_marked_and_keeps_its_weight) {
  OneSynapse one(1);
  one.target.trace[0] = 0.5f;
  one.spike(1, 0);
  BOOST_TEST(one.weight() == 1.0f);
  BOOST_TEST(one.mark() == 0.5f * (0.5f - 0.1f));
}

BOOST_AUTO_TEST_CASE(eligibility_decays_with_the_time_between_spikes) {
  OneSynapse one(1);
  one.target.trace[0] = 0.5f;
  one.spike(100, 0);
  const double mark = static_cast<double>(one.mark());
  one.target.trace[0] = 0;
  one.spike(160, 0);
  BOOST_TEST(static_cast<double>(one.mark()) == mark * std::exp(-60 / 200.0),
             boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(weights_stay_within_bounds_and_inhibition_does_not_learn) {
  OneSynapse strong(1.99f);
  strong.target.trace[0] = 50;
  strong.spike(1, 1);
  BOOST_TEST(strong.weight() == strong.parameters.max_weight);

  OneSynapse weak(1e-4f);
  weak.target.bcm_threshold[0] = 100;
  weak.target.trace[0] = 50;
  weak.spike(1, 1);
  BOOST_TEST(weak.weight() > 0.0f);
  BOOST_TEST(weak.weight() < 1e-5f);

  OneSynapse inhibitory(-1);
  inhibitory.target.trace[0] = 50;
  inhibitory.spike(1, 1);
  BOOST_TEST(inhibitory.weight() == -1.0f);
  BOOST_TEST(inhibitory.mark() == 0.0f);
}

BOOST_AUTO_TEST_SUITE_END()
