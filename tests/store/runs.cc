#include "store/runs.h"

namespace thalia::test {

RunConfig small_config() {
  RunConfig config;
  config.phases = {{.name = "train", .metric = Metric{"loss", Direction::min}}};
  config.deltas.kind = DeltaPolicy::Kind::never;
  return config;
}

RunConfig bytes_config() {
  RunConfig config = small_config();
  config.extension = "pt";
  return config;
}

TemporaryRun::TemporaryRun(const RunConfig& config) {
  create_run(path(), config);
}

RunWriter TemporaryRun::writer(RunWriterOptions options) const {
  options.durability = Durability::none;
  return RunWriter(path(), std::move(options));
}

Sample state_of_step(std::uint64_t step) {
  Sample sample;
  sample.training_steps = step;
  sample.regions.push_back(
      {.spec = {.name = "model"},
       .tensors = {dense_tensor("w", DType::f32, {64, 64}), dense_tensor("b", DType::f32, {64})}});
  std::vector<std::byte>& bias = sample.regions[0].tensors[1].payload;
  for (std::size_t i = 0; i < sizeof step; ++i)
    bias[i] = static_cast<std::byte>(step >> (8 * i) & 0x3f);
  return sample;
}

BrainState brain_of(std::uint64_t step, bool all_changes) {
  BrainState brain;
  brain.training_steps = step;
  Sample sample = state_of_step(step);
  if (all_changes)
    sample.regions[0].tensors[0] = dense_tensor("w", DType::f32, {64, 64}, Role::weights, step);
  BrainRegion& region = brain.regions.add("model");
  for (const SampleTensor& tensor : sample.regions[0].tensors)
    region.weights()[tensor.spec.name] =
        Tensor::copy_of(tensor.spec.dtype, tensor.spec.shape, tensor.payload);
  return brain;
}

StoredCheckpoint save_step(RunWriter& writer, std::uint64_t step, const SaveInfo& info) {
  const std::string phase = writer.run().config().phases[0].name;
  if (!writer.run().config().is_thalia())
    return writer.save_bytes(phase, step, bytes_of("checkpoint " + std::to_string(step)), info);
  const Sample sample = state_of_step(step);
  Writer file = writer.new_checkpoint(phase, step, steady_options(), info.replace);
  declare(file, sample);
  return writer.commit(std::move(file), info);
}

std::vector<std::uint64_t> steps_of(const std::vector<CheckpointEntry>& entries) {
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : entries) steps.push_back(entry.step);
  return steps;
}

void damage(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 0x40;
  write_file(path, bytes);
}

}  // namespace thalia::test
