// States that change from save to save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "thalia/state/delta.h"
#include "thalia/writer.h"

namespace thalia::test {

struct DeltaSampleTensor {
  Tensor tensor;
  Role role = Role::weights;
};

/// Regions of named tensors; connections by their regions.
struct SampleState {
  std::map<std::string, std::map<std::string, DeltaSampleTensor>> regions;
  std::map<std::pair<std::string, std::string>, Tensor> connections{};
  std::uint64_t steps = 0;
  std::string metadata = "{}";
};

inline TensorSpec sample_spec(const std::string& name, const DeltaSampleTensor& sample) {
  return TensorSpec::of(name, sample.tensor.layout(), sample.role);
}

inline StateSource state_source(const SampleState& state) {
  const auto source = [](const std::string& name, const DeltaSampleTensor& sample) {
    return TensorSource{.spec = sample_spec(name, sample),
                        .load = [tensor = sample.tensor] { return tensor; }};
  };
  StateSource out{.metadata_json = state.metadata, .training_steps = state.steps, .regions = {}};
  for (const auto& [name, tensors] : state.regions) {
    RegionSource& region = out.regions.emplace_back();
    region.spec = {.name = name, .config_json = "{\"of\":\"" + name + "\"}", .n_neurons = 3};
    for (const auto& [tensor_name, tensor] : tensors)
      region.tensors.push_back(source(tensor_name, tensor));
  }
  for (const auto& [pair, tensor] : state.connections)
    out.connections.push_back(
        {.source = pair.first, .target = pair.second, .weights = source("", {tensor})});
  return out;
}

inline SaveResult save_full(const SampleState& state, const std::filesystem::path& path,
                            const SaveOptions& options = {
                                .output = {.durability = Durability::none}}) {
  Writer writer(path, options);
  writer.set_metadata(state.metadata);
  writer.set_training_steps(state.steps);
  for (const auto& [name, tensors] : state.regions) {
    const RegionId region = writer.add_region(
        {.name = name, .config_json = "{\"of\":\"" + name + "\"}", .n_neurons = 3});
    for (const auto& [tensor_name, sample] : tensors)
      writer.add_tensor(region, sample_spec(tensor_name, sample), sample.tensor.bytes());
  }
  for (const auto& [pair, tensor] : state.connections) {
    const ConnectionId id = writer.add_connection(pair.first, pair.second);
    writer.add_connection_weights(id, sample_spec("", {tensor}), tensor.bytes());
  }
  return writer.commit();
}

inline DeltaResult save_delta(const SampleState& state, const std::filesystem::path& base,
                              const std::filesystem::path& path,
                              DeltaOptions options = {.pack = false}) {
  options.save.output.durability = Durability::none;
  return write_delta(state_source(state), ChainReader::open(base), path, options);
}

inline Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937_64& random) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  for (std::byte& byte : tensor.mutable_bytes()) {
    byte = static_cast<std::byte>(random());
    if (dtype == DType::boolean) byte &= std::byte{1};
    if (dtype == DType::ternary) byte |= (byte >> 1) & std::byte{0x55};  // 10 stands for nothing
  }
  // Unused bits of packed types are zero.
  const unsigned used = static_cast<unsigned>(*shape.element_count() % 8 * dtype_bits(dtype) % 8);
  if (used != 0) tensor.mutable_bytes().back() &= static_cast<std::byte>((1u << used) - 1);
  return tensor;
}

/// f32 weights as training leaves them.
inline Tensor normal_tensor(const Shape& shape, std::mt19937_64& random, float scale = 0.02f) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  std::normal_distribution<float> normal(0, scale);
  for (float& value : tensor.mutable_as<float>()) value = normal(random);
  return tensor;
}

}  // namespace thalia::test
