#include "support/sample.h"

#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {

SaveOptions steady_options() {
  SaveOptions options;
  options.block_log2 = 12;
  options.timestamp = 1'767'225'600;
  options.file_uuid.emplace();
  options.file_uuid->fill(0x5A);
  options.output.durability = Durability::none;
  options.work.threads = 1;
  return options;
}

void declare(Writer& writer, const Sample& sample) {
  writer.set_metadata(sample.metadata);
  writer.set_training_steps(sample.training_steps);
  for (const SampleRegion& region : sample.regions) {
    const RegionId id = writer.add_region(region.spec);
    for (const SampleTensor& tensor : region.tensors)
      writer.add_tensor(id, tensor.spec, tensor.payload);
  }
  for (const SampleConnection& connection : sample.connections) {
    const ConnectionId number = writer.add_connection(connection.source, connection.target);
    writer.add_connection_weights(number, connection.weights.spec, connection.weights.payload);
    if (connection.delays)
      writer.add_connection_delays(number, connection.delays->spec, connection.delays->payload);
  }
}

SaveResult save(const std::filesystem::path& path, const Sample& sample,
                const SaveOptions& options) {
  Writer writer(path, options);
  declare(writer, sample);
  return writer.commit();
}

std::string saved(const Sample& sample, const SaveOptions& options) {
  const TemporaryFolder folder;
  save(folder / "f", sample, options);
  return read_file(folder / "f");
}

Sample small_sample() {
  return {
      .metadata = R"({"made":"by a test"})",
      .training_steps = 7,
      .regions = {{{.name = "a", .config_json = R"({"tau":20})", .n_neurons = 3},
                   {dense_tensor("d", DType::f32, {3, 4}), csr_tensor("r", DType::i8, {3, 5}),
                    coo_tensor("o", DType::i16, {2, 3, 2})}},
                  {{.name = "b", .config_json = "{}", .metadata_json = R"({"note":null})"},
                   {dense_tensor("bits", DType::binary, {11}, Role::region_state)}}},
      .connections = {{"a", "b", csr_tensor("", DType::f32, {3, 4}),
                       dense_tensor("", DType::u8, {3, 4}, Role::other)}},
  };
}

Sample varied_sample() {
  const std::string long_name = "hippocampus.ca3.pyramidal.layer.two";
  // Compressible, and longer than a block and than the smallest chunk.
  SampleTensor ramp = dense_tensor("ramp", DType::u8, {9'001}, Role::buffer);
  for (std::size_t i = 0; i < ramp.payload.size(); ++i) ramp.payload[i] = std::byte(i / 97);
  SampleRegion cortex{
      {.name = "cortex",
       .config_json = R"({"tau_ms": 20.0, "nested": {"list": [1, -2e3]}})",
       .metadata_json = R"({"ключ":"\u00e9"})",
       .n_neurons = 40,
       .n_inputs = 12,
       .neuron_type = NeuronType::conductance_lif,
       .homeostatic_updated = 1'700'000'000},
      {dense_tensor("w_in", DType::f32, {40, 12}), csr_tensor("w_rec", DType::f32, {40, 40}),
       csr_tensor("w_wide", DType::f64, {9, 7}, true), csr_tensor("w_gap", DType::f64, {5, 4}),
       coo_tensor("w_list", DType::i16, {3, 5, 4}),
       dense_tensor("thresholds", DType::f32, {40}, Role::homeostatic),
       dense_tensor("spikes", DType::binary, {43}, Role::region_state),
       dense_tensor("potential", DType::f64, {40}, Role::region_state),
       dense_tensor("trace", DType::bf16, {40, 3}, Role::learning_state),
       dense_tensor("phase", DType::c64, {4}, Role::oscillator),
       dense_tensor("dopamine", DType::f16, {}, Role::neuromodulator),
       dense_tensor("moment", DType::f32, {40}, Role::optimizer),
       dense_tensor("mask", DType::boolean, {13}, Role::buffer),
       dense_tensor("codes", DType::i4, {7}, Role::other),
       dense_tensor("signs", DType::ternary, {5}, Role::other),
       dense_tensor("nothing", DType::f32, {0, 3}, Role::other), std::move(ramp)}};
  return {
      .metadata = R"({"description": "every kind of thing"})",
      .training_steps = 123'456,
      .regions = {std::move(cortex),
                  {{.name = "empty"}, {}},
                  {{.name = long_name}, {dense_tensor("layer.0.weight", DType::i8, {300})}}},
      .connections = {{"cortex", long_name, csr_tensor("", DType::f32, {40, 30}),
                       dense_tensor("", DType::u16, {40, 30}, Role::other)},
                      {long_name, "cortex", dense_tensor("", DType::bf16, {30, 4}), std::nullopt}},
  };
}

Sample connected_sample(unsigned regions) {
  Sample sample;
  for (unsigned i = 0; i < regions; ++i)
    sample.regions.push_back({{.name = "region " + std::to_string(i)}, {}});
  for (const SampleRegion& source : sample.regions) {
    for (const SampleRegion& target : sample.regions) {
      sample.connections.push_back(
          {source.spec.name, target.spec.name, dense_tensor("", DType::u8, {1}), std::nullopt});
    }
  }
  return sample;
}

}  // namespace thalia::test
