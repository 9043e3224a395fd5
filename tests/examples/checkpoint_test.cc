#include "spiking/checkpoint.h"

#include <algorithm>

#include "boost_test.h"
#include "spiking/build.h"
#include "spiking/state_fields.h"
#include "spiking/state_hash.h"
#include "support/files.h"
#include "support/sanitizers.h"
#include "thalia/reader.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(checkpoint)

namespace {

void run(Network& network, Workers& workers, std::uint32_t steps, SpikeLog& log) {
  Simulator simulator(network, workers);
  for (std::uint32_t i = 0; i < steps; ++i) log.push_back(simulator.step());
}

thalia::BrainSaveOptions quick_save() {
  return {.save = {.output = {.durability = thalia::Durability::none}}};
}

/// A saved network that has run a little.
struct Saved {
  thalia::test::TemporaryFolder folder;
  std::filesystem::path path = folder / "network.thalia";
  Workers workers{2};
  Network network = build_network(1000, 11, workers);
  SpikeLog log;

  Saved() {
    run(network, workers, 40, log);
    save(network, path, quick_save());
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(saving_and_resuming_at_any_step_equals_a_straight_run) {
  const thalia::test::TemporaryFolder folder;
  Workers workers(2);
  constexpr std::uint32_t kSteps = 80;
  for (const std::uint64_t seed : {1u, 77u}) {
    if (thalia::test::kSanitized && seed != 1) continue;
    Network straight = build_network(1000, seed, workers);
    SpikeLog expected;
    run(straight, workers, kSteps, expected);
    BOOST_TEST(total_spikes(expected) > 0u);

    for (const std::uint32_t k : {0u, 1u, 15u, 16u, 17u, 50u, 79u}) {
      BOOST_TEST_CONTEXT("seed " << seed << ", saved after step " << k) {
        Network first = build_network(1000, seed, workers);
        SpikeLog log;
        run(first, workers, k, log);
        save(first, folder / "network.thalia", quick_save());
        Network second = load(folder / "network.thalia");
        BOOST_TEST(state_hash(second) == state_hash(first));
        run(second, workers, kSteps - k, log);
        BOOST_TEST(!spiking::first_difference(log, expected).has_value());
        BOOST_TEST(state_hash(second) == state_hash(straight));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_compressed_checkpoint_resumes_too) {
  Saved saved;
  for (const char* name : {"network.thalia", "network.thalia.zst"}) {
    thalia::BrainSaveOptions options = quick_save();
    options.save.compression.codec = thalia::Codec::zstd;
    save(saved.network, saved.folder / name, options);
    Network loaded = load(saved.folder / name);
    BOOST_TEST(state_hash(loaded) == state_hash(saved.network));
  }
}

BOOST_AUTO_TEST_CASE(the_file_passes_verification) {
  const Saved saved;
  const thalia::VerifyReport report = thalia::verify(saved.path);
  BOOST_TEST(report.findings.size() == 0u);
  BOOST_TEST(report.regions == region_plans().size());
}

BOOST_AUTO_TEST_CASE(the_file_describes_the_network) {
  Saved saved;
  const thalia::Reader reader = thalia::Reader::open(saved.path);
  const thalia::BrainInfo info = thalia::BrainCheckpoint::info(saved.path);
  BOOST_TEST(info.metadata.at("description").as_string() == "spiking network of thalia-demo");
  BOOST_TEST(info.metadata.at("custom").at("seed").as_uint64() == 11u);
  BOOST_TEST(info.training_steps == 41u);
  BOOST_TEST(reader.header().total_neurons == 1000u);
  BOOST_TEST(reader.header().total_synapses == saved.network.synapses());
  BOOST_TEST(reader.connection_count() == pathway_plans().size());
  const thalia::RegionView striatum = reader.region("striatum");
  BOOST_TEST(striatum.n_neurons() == 100u);
  BOOST_TEST((striatum.neuron_type() == thalia::NeuronType::lif));
  BOOST_TEST(striatum.at("membrane").as<float>().size() == 100u);
  BOOST_TEST((striatum.at("eligibility.cortex_l23").role() == thalia::Role::learning_state));
  for (std::size_t r = 0; r < saved.network.regions.size(); ++r) {
    const auto region = reader.region(saved.network.regions[r].plan.name);
    BOOST_TEST(region.tensor_count() == state_fields(saved.network, r).size() + 1);
  }
}

BOOST_AUTO_TEST_CASE(every_role_of_a_living_network_is_there) {
  const Saved saved;
  const thalia::Reader reader = thalia::Reader::open(saved.path);
  const thalia::RegionView region = reader.region("hippocampus");
  for (const auto role :
       {thalia::Role::weights, thalia::Role::homeostatic, thalia::Role::region_state,
        thalia::Role::learning_state, thalia::Role::oscillator, thalia::Role::neuromodulator}) {
    bool found = false;
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
      found = found || region.tensor(i).role() == role;
    BOOST_TEST(found, thalia::role_name(role));
  }
}

BOOST_AUTO_TEST_CASE(a_file_of_something_else_is_refused) {
  const thalia::test::TemporaryFolder folder;
  thalia::Writer writer(folder / "other.thalia", quick_save().save);
  writer.add_region({.name = "cortex"});
  writer.commit();
  BOOST_CHECK_EXCEPTION(
      load(folder / "other.thalia"), std::runtime_error, [](const std::runtime_error& error) {
        return std::string(error.what()).find("not saved by the demo") != std::string::npos;
      });
}

BOOST_AUTO_TEST_SUITE_END()
