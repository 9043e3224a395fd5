// Brains whose weights are saved as codes of a few bits.
#include "boost_test.h"
#include "state/quantize/quantization_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/state/checkpoint.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(brain_quantization)

namespace {

BrainState sample() {
  BrainState brain;
  BrainRegion region{.n_neurons = 64, .n_inputs = 32};
  region.state["weights"] = Value::object();
  region.state["weights"]["w_in"] = tensor_of(DType::f32, {64, 32}, normal_numbers(2048, 0.1));
  region.state["optimizer_state"] = Value::object();
  region.state["optimizer_state"]["m"] =
      tensor_of(DType::f32, {64, 32}, normal_numbers(2048, 0.1, 2));
  brain.regions.add("cortex", std::move(region));
  brain.connectivity.add({.source = "cortex",
                          .target = "cortex",
                          .weights = tensor_of(DType::f32, {64, 64}, normal_numbers(4096, 1))});
  return brain;
}

BrainSaveOptions lossy(double bits) {
  return {.quantization = QuantizationOptions{.bits = bits}, .save = quiet_save()};
}

const Tensor& weights(const BrainState& brain) {
  return brain.regions.at("cortex").state.find("weights")->find("w_in")->as_tensor();
}

}  // namespace

BOOST_AUTO_TEST_CASE(loads_weights_as_the_type_that_was_saved) {
  const TemporaryFolder folder;
  const BrainState brain = sample();
  const BrainSaveResult saved = BrainCheckpoint::save(brain, folder / "b.thalia", lossy(6));
  BOOST_TEST_REQUIRE(saved.quantized.size() == 1u);
  BOOST_TEST(saved.quantized[0].region == "cortex");
  BOOST_TEST(saved.quantized[0].name == "w_in");
  BOOST_TEST(saved.not_finite.empty());
  BOOST_TEST(verify(folder / "b.thalia").ok());
  for (const bool lazy : {false, true}) {
    const BrainState loaded = BrainCheckpoint::load(folder / "b.thalia", {.lazy = lazy});
    const Tensor& restored = weights(loaded);
    BOOST_CHECK(restored.dtype() == DType::f32);
    BOOST_TEST(restored.is_dense());
    const auto before = numbers_of(weights(brain)), after = numbers_of(restored);
    double largest = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      largest = std::max(largest, std::fabs(before[i] - after[i]));
    BOOST_TEST(largest == saved.quantized[0].max_error);
    // What has to be exact is.
    const auto moments = [](const BrainState& of) {
      return of.regions.at("cortex").state.find("optimizer_state")->find("m")->as_tensor();
    };
    BOOST_TEST(bool(moments(loaded) == moments(brain)));
    BOOST_TEST(bool(loaded.connectivity.all()[0].weights == brain.connectivity.all()[0].weights));
  }
}

BOOST_AUTO_TEST_CASE(counts_losses_through_a_state_in_memory) {
  const TemporaryFolder folder;
  BrainSaveOptions options = lossy(4);
  options.quantization->max_generations = 2;
  BrainCheckpoint::save(sample(), folder / "1.thalia", options);
  // Exactly saved in between, and with another precision.
  BrainState brain = BrainCheckpoint::load(folder / "1.thalia");
  BrainCheckpoint::save(brain, folder / "exact.thalia.zst", {.save = quiet_save()});
  brain = BrainCheckpoint::load(folder / "exact.thalia.zst");
  BrainSaveOptions half = lossy(4);
  half.precision_policy = parse_precision_policy("fp16");
  BrainCheckpoint::save(brain, folder / "2.thalia.zst", half);
  brain = BrainCheckpoint::load(folder / "2.thalia.zst");
  BOOST_CHECK(weights(brain).dtype() == DType::f32);
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save(brain, folder / "3.thalia", lossy(4)), UsageError,
                        says(ErrorCode::wrong_state, "lossy_generation", "got 3", "at most 2"));
  BOOST_TEST(!std::filesystem::exists(folder / "3.thalia"));
}

BOOST_AUTO_TEST_CASE(saves_codes_in_the_background) {
  const TemporaryFolder folder;
  {
    AsyncSaver saver;
    const BrainState brain = sample();
    BrainCheckpoint::save_async(saver, brain, folder / "b.thalia", lossy(5)).wait();
  }
  BOOST_TEST(verify(folder / "b.thalia").ok());
  BOOST_TEST(quantization_of(Reader::open(folder / "b.thalia").tensor("w_in"))->bits == 5u);
}

BOOST_AUTO_TEST_CASE(deltas_take_no_quantization) {
  const TemporaryFolder folder;
  BrainCheckpoint::save(sample(), folder / "b.thalia", {.save = quiet_save()});
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_delta(sample(), folder / "d.delta.thalia",
                                                    folder / "b.thalia", {.brain = lossy(4)}),
                        UsageError, says(ErrorCode::bad_argument, "quantization"));
}

BOOST_AUTO_TEST_CASE(deltas_of_low_rank_load_as_a_state) {
  const TemporaryFolder folder;
  BrainState brain = sample();
  BrainCheckpoint::save(brain, folder / "b.thalia", {.save = quiet_save()});
  // A column times a row more.
  Tensor changed = weights(brain);
  const std::span<float> elements = changed.mutable_as<float>();
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] += static_cast<float>(i / 32 + 1) * std::sin(static_cast<float>(i % 32)) / 100;
  brain.regions.at("cortex").state["weights"]["w_in"] = changed;
  const BrainDeltaResult saved = BrainCheckpoint::save_delta(
      brain, folder / "d.delta.thalia", folder / "b.thalia",
      {.loss = {.low_rank = LowRankOptions{.bits_per_element = 1, .min_elements = 1}},
       .brain = {.save = quiet_save()}});
  BOOST_TEST_REQUIRE(saved.low_rank.size() == 1u);
  BOOST_TEST(saved.low_rank[0].name == "w_in");
  BOOST_TEST(saved.low_rank[0].relative_error < 0.05);
  const BrainState loaded = BrainCheckpoint::load(folder / "d.delta.thalia");
  const auto before = numbers_of(changed), after = numbers_of(weights(loaded));
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    largest = std::max(largest, std::fabs(before[i] - after[i]));
  BOOST_TEST(largest == saved.low_rank[0].max_error);
  // The loss is counted from here on.
  BOOST_CHECK_EXCEPTION(
      BrainCheckpoint::save(loaded, folder / "q.thalia",
                            {.quantization = QuantizationOptions{.max_generations = 1}}),
      UsageError, says(ErrorCode::wrong_state, "lossy_generation"));
}

BOOST_AUTO_TEST_SUITE_END()
