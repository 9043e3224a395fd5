#include "cli/make_grown.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "thalia/state.h"
#include "thalia/thalia.h"

using namespace thalia;
namespace fs = std::filesystem;

namespace {

// All three shapes of events, and a name that XML and terminals need escaped.
constexpr const char* kHistory =
    R"([{"timestamp":"2025-12-08T12:00:00","region":"striatum","neurons_added":8,"old_size":320,"new_size":328,"reason":"manual_test"},)"
    R"({"step":10000,"region":"cortex_l4","neurons_added":100,"reason":"high_utilization","type":"growth"},)"
    R"({"step":20000,"component_name":"cortex_l4","component_type":"region","event_type":"add_neurons","n_neurons_added":50,"n_synapses_added":640,"reason":"saturation"},)"
    R"({"step":30000,"region":"<odd & \"name\">","neurons_added":4,"reason":"a\u0007bell","stage":3},)"
    R"({"step":45000,"region":"striatum","synapses_pruned":234,"reason":"consolidation","type":"pruning","safety_level":"conservative","importance_threshold":0.001})";

void write_grown(const fs::path& path, const SaveOptions& options) {
  const std::array<float, 12> weights{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::array<float, 4> trace{1, NAN, INFINITY, 0};
  const std::array<std::int64_t, 2> counts{9007199254740993, -1};
  const std::array<std::uint32_t, 3> rows{0, 1, 2};
  const std::array<std::uint32_t, 2> columns{2, 0};
  const std::array<float, 2> stored{5, 7};
  Writer writer(path, options);
  writer.set_training_steps(50'000);
  writer.set_metadata(R"({"description":"a growing network","tags":["small"],"growth_history":)" +
                      std::string(kHistory) + "]}");
  const RegionId cortex = writer.add_region(
      {.name = "cortex_l4", .config_json = R"({"tau_ms":20.0,"dt":1})", .n_neurons = 400});
  writer.add_tensor(cortex, {.name = "w", .shape = {4, 3}}, as_byte_span(weights));
  writer.add_tensor(cortex, {.name = "trace", .shape = {4}, .role = Role::learning_state},
                    as_byte_span(trace));
  writer.add_tensor(cortex,
                    {.name = "counts", .dtype = DType::i64, .shape = {2}, .role = Role::buffer},
                    as_byte_span(counts));
  const RegionId striatum = writer.add_region({.name = "striatum", .n_neurons = 328});
  writer.add_csr(striatum, {.name = "w", .shape = {2, 3}},
                 CsrArrays<std::uint32_t>{rows, columns, as_byte_span(stored)});
  writer.add_tensor(striatum, {.name = "bias", .shape = {3}}, as_byte_span(weights).first(12));
  writer.add_region({.name = "<odd & \"name\">", .n_neurons = 4});
  const ConnectionId projection = writer.add_connection("cortex_l4", "striatum");
  writer.add_connection_weights(projection, {.shape = {2, 2}}, as_byte_span(trace));
  writer.commit();
}

// cortex_l4 has grown and learned, striatum is stored in another way, a region came and one went.
void write_later(const fs::path& path, const SaveOptions& options) {
  const std::array<float, 15> weights{0, 1, 2.5f, 3, 4, 5, 6, 7, 6, 9, 10, 11, 12, 13, 14};
  const std::array<float, 4> trace{1.5f, NAN, 1, NAN};
  const std::array<std::int64_t, 2> counts{9007199254740992, -1};
  const std::array<float, 6> dense{0, 0, 5, 7, 0, 0};
  const std::array<std::uint16_t, 3> bias{0x0000, 0x3C00, 0x4000};
  Writer writer(path, options);
  writer.set_training_steps(60'000);
  writer.set_metadata(R"({"growth_history":)" + std::string(kHistory) +
                      R"(,{"step":55000,"region":"cortex_l4","neurons_added":100}],)" +
                      R"("description":"a growing network, later","notes":{"by":"hand"}})");
  const RegionId cortex = writer.add_region(
      {.name = "cortex_l4", .config_json = R"({"dt":1,"tau_ms":25.0})", .n_neurons = 500});
  writer.add_tensor(cortex, {.name = "w", .shape = {5, 3}}, as_byte_span(weights));
  writer.add_tensor(cortex, {.name = "trace", .shape = {4}, .role = Role::learning_state},
                    as_byte_span(trace));
  writer.add_tensor(cortex,
                    {.name = "counts", .dtype = DType::i64, .shape = {2}, .role = Role::buffer},
                    as_byte_span(counts));
  writer.add_tensor(cortex, {.name = "theta", .shape = {4}, .role = Role::homeostatic},
                    as_byte_span(trace));
  const RegionId striatum = writer.add_region({.name = "striatum", .n_neurons = 328});
  writer.add_tensor(striatum, {.name = "w", .shape = {2, 3}}, as_byte_span(dense));
  writer.add_tensor(striatum, {.name = "bias", .dtype = DType::f16, .shape = {3}},
                    as_byte_span(bias));
  writer.add_region({.name = "pfc", .n_neurons = 10});
  const ConnectionId projection = writer.add_connection("striatum", "pfc");
  writer.add_connection_weights(projection, {.shape = {2, 2}}, as_byte_span(trace));
  writer.commit();
}

void write_other(const fs::path& path, const SaveOptions& options) {
  const std::array<float, 2> weights{1, 2};
  Writer writer(path, options);
  writer.set_training_steps(70'000);
  writer.set_metadata(
      R"({"tags":["small"],"owner":"somebody","growth_history":[{"step":15000,"region":"pons","neurons_added":2,"reason":"test","type":"growth"}]})");
  const RegionId pons = writer.add_region({.name = "pons", .n_neurons = 2});
  writer.add_tensor(pons, {.name = "w", .shape = {2}}, as_byte_span(weights));
  writer.add_region({.name = "<odd & \"name\">", .n_neurons = 4});
  writer.commit();
}

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::copy_of<float>(shape, values);
}

// A brain that says what of it is unused. In cortex/w_in two synapses are dead, one weak one is
// young and one important; nobody knows the ages of w_rec. Neurons 2 and 3 are silent, and 0 too,
// but with a strong weight.
void write_prunable(const fs::path& path, const SaveOptions& options) {
  BrainState brain;
  brain.training_steps = 500'000;
  brain.state["task_change"]["active"] = false;
  brain.state["task_change"]["step"] = 100'000;
  BrainRegion& cortex = brain.regions.add("cortex", {.n_neurons = 4, .n_inputs = 3});
  cortex.weights()["w_in"] =
      floats({4, 3}, {0.5f, 0.005f, 0, 0.009f, 0.7f, -0.009f, 0, 0.02f, 0, -0.008f, 0, 0.05f});
  cortex.weights()["w_rec"] = floats({4, 4}, std::vector<float>(16, 0.001f));
  ComponentRef learning = cortex.learning_state();
  learning["synapse_age"]["w_in"] =
      floats({4, 3}, {9e5f, 9e5f, 0, 9e3f, 9e5f, 9e5f, 0, 9e5f, 0, 9e5f, 0, 9e5f});
  learning["synapse_importance"]["w_in"] = floats({4, 3}, {0, 0, 0, 0, 0, 0.5f, 0, 0, 0, 0, 0, 0});
  learning["importance_window_steps"] = 60'000;
  learning["silent_steps"] = floats({4}, {300'000, 10, 200'000, 150'000});
  BrainRegion& striatum = brain.regions.add("striatum", {.n_neurons = 2, .n_inputs = 4});
  striatum.weights()["cortex"] = floats({2, 4}, std::vector<float>(8, 0.03f));
  brain.connectivity.add({"cortex", "striatum", floats({4, 2}, std::vector<float>(8, 0.04f))});
  BrainCheckpoint::save(brain, path, {.save = options});
}

}  // namespace

void write_grown_files(const fs::path& folder, const SaveOptions& options) {
  write_grown(folder / "grown.thalia", options);
  write_later(folder / "later.thalia", options);
  write_other(folder / "other.thalia", options);
  write_prunable(folder / "prunable.thalia", options);
  Writer odd(folder / "odd_history.thalia", options);
  odd.set_metadata(R"({"growth_history":{"step":1}})");
  odd.commit();
}
