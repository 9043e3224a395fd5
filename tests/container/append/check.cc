#include "container/append/check.h"

#include "boost_test.h"
#include "container/write/same_as_sample.h"
#include "thalia/verify.h"

namespace thalia::test {

AppendOptions steady_append() {
  AppendOptions options;
  options.timestamp = 1'767'312'000;
  options.change.output.durability = Durability::none;
  options.change.work.threads = 1;
  return options;
}

void declare_tensors(Appender& appender, RegionId id, const SampleRegion& region) {
  for (const SampleTensor& tensor : region.tensors)
    appender.add_tensor(id, tensor.spec, tensor.payload);
}

void declare_connection(Appender& appender, const SampleConnection& connection) {
  const ConnectionId number = appender.add_connection(connection.source, connection.target);
  appender.add_connection_weights(number, connection.weights.spec, connection.weights.payload);
  if (connection.delays)
    appender.add_connection_delays(number, connection.delays->spec, connection.delays->payload);
}

void check_state(const std::filesystem::path& path, const Sample& sample,
                 std::uint64_t generation) {
  const VerifyReport report = verify(path);
  for (const Finding& finding : report.findings) {
    BOOST_TEST_ERROR(finding.section << " " << finding.region << " " << finding.tensor << " at "
                                     << finding.offset << ": " << finding.message);
  }
  for (const Verification mode :
       {Verification::off, Verification::on_first_touch, Verification::at_open}) {
    const Reader reader = Reader::open(path, {.verification = mode});
    BOOST_TEST(reader.header().generation == generation);
    check_same(reader, sample);
  }
}

Sample changed_sample() {
  Sample sample = small_sample();
  sample.metadata = R"({"made":"by an append"})";
  sample.training_steps = 8;
  sample.regions[0].spec.n_neurons = 90;
  sample.regions[0].tensors = {dense_tensor("d", DType::f32, {90, 17}, Role::weights, 2),
                               csr_tensor("grown", DType::f64, {12, 9}, true, 3)};
  sample.regions[1] = {{.name = "c", .config_json = R"({"new":true})", .n_neurons = 5},
                       {dense_tensor("trace", DType::bf16, {5, 2}, Role::learning_state, 4),
                        coo_tensor("o", DType::f32, {4, 4}, false, 5)}};
  sample.connections.clear();
  return sample;
}

void append_change(const std::filesystem::path& path, const AppendOptions& options) {
  const Sample sample = changed_sample();
  Appender appender(path, options);
  appender.set_metadata(sample.metadata);
  appender.set_training_steps(sample.training_steps);
  declare_tensors(appender, appender.replace_region(sample.regions[0].spec), sample.regions[0]);
  appender.remove_region("b");
  declare_tensors(appender, appender.add_region(sample.regions[1].spec), sample.regions[1]);
  appender.commit();
}

}  // namespace thalia::test
