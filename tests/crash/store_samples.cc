#include "crash/store_run.h"
#include "support/sample.h"

namespace thalia::crash {

RunConfig crash_config() {
  RunConfig config;
  config.phases = {{.name = "train", .metric = Metric{"loss", Direction::min}}};
  config.phases[0].retention.keep_last = 3;
  config.deltas.kind = DeltaPolicy::Kind::never;
  return config;
}

RunConfig crash_config_of_bytes() {
  RunConfig config = crash_config();
  config.extension = "pt";
  return config;
}

RunConfig crash_config_with_pool() {
  RunConfig config = crash_config();
  config.phases.push_back({.name = "league"});
  config.pool =
      PoolConfig{.phase = "league", .folder = "pool", .keep = 2, .anchors = {"train_best"}};
  return config;
}

BrainState crash_state(std::uint64_t step, bool all_changes) {
  BrainState brain;
  brain.training_steps = step;
  BrainRegion& region = brain.regions.add("model");
  const auto add = [&](const char* name, const Shape& shape, std::uint64_t seed) {
    const test::SampleTensor made =
        test::dense_tensor(name, DType::f32, shape, Role::weights, seed);
    region.weights()[name] = Tensor::copy_of(DType::f32, shape, made.payload);
  };
  add("w", {40, 64}, all_changes ? step : 1);
  add("b", {32}, step);
  return brain;
}

std::string crash_bytes(std::uint64_t step) {
  std::string text = "checkpoint " + std::to_string(step) + " ";
  for (unsigned i = 0; text.size() < 9000; ++i) text += std::to_string(step * 31 + i) + " ";
  return text;
}

}  // namespace thalia::crash
