#include "store/pool/runs.h"

#include <algorithm>
#include <cstring>

namespace thalia::test {
namespace {

TensorSource source_of(std::string name, Tensor tensor, Role role = Role::weights) {
  return {.spec = TensorSpec::of(std::move(name), tensor.layout(), role),
          .load = [tensor] { return tensor; }};
}

}  // namespace

Tensor numbered_tensor(DType dtype, const Shape& shape, unsigned seed) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  unsigned i = 0;
  for (std::byte& byte : tensor.mutable_bytes())
    byte = static_cast<std::byte>((i++ * 7 + seed * 13) & 0x3f);
  return tensor;
}

StateSource record_of(const Record& record) {
  StateSource state;
  const auto region = [&](const char* name, std::vector<TensorSource> tensors) {
    state.regions.push_back({.spec = {.name = name}, .tensors = std::move(tensors)});
  };
  region("model_record", {source_of("head", numbered_tensor(DType::f32, {3, 2}, record.seed)),
                          source_of("stem", numbered_tensor(DType::bf16, {4, 3}, record.seed))});
  region("optimizer_record",
         {source_of("stem.exp_avg", numbered_tensor(DType::f32, {4, 3}, record.seed + 1))});
  region("rng_state", {source_of("words", numbered_tensor(DType::u64, {4}, 5), Role::other)});
  region("scheduler_record",
         {source_of("last", numbered_tensor(DType::f64, {1}, 6), Role::learning_state)});
  if (record.has_teacher)
    region("teacher_state_dict",
           {source_of("stem", numbered_tensor(DType::bf16, {4, 3}, record.seed + 2))});
  Value metadata = Value::object();
  metadata.add("global_step", record.step);
  metadata.add("phase", record.phase);
  metadata.add("config", Value::object());
  metadata.add("metrics", Value::object());
  metadata.add("timestamp", 1'700'000'000);
  metadata.add("checkpoint_version", 1);
  metadata.add("feature_dropout", record.feature_dropout);
  if (record.has_pool_metadata) metadata.add("opponent_pool_metadata", Value::object());
  state.metadata_json = to_json(metadata);
  state.training_steps = record.step;
  return state;
}

RunWriterOptions quick_writing(std::vector<std::string>* warnings) {
  RunWriterOptions options{.durability = Durability::none};
  if (warnings != nullptr)
    options.on_warning = [warnings](const std::string& sentence) { warnings->push_back(sentence); };
  return options;
}

HydraRun::HydraRun(RunConfig config) {
  create_run(path(), config);
}

void HydraRun::save(RunWriter& writer, std::uint64_t step, unsigned seed) {
  writer.save("phase3", step,
              record_of({.seed = seed, .step = step, .phase = 3, .has_pool_metadata = true}));
}

void HydraRun::play_phase1(RunWriter& writer) {
  writer.save("phase1", 100, record_of({.seed = 1, .step = 100}), {.metric = 0.9});
  writer.save("phase1", 200, record_of({.seed = 2, .step = 200}), {.metric = 0.5});
  writer.promote("phase1");
}

void HydraRun::play_phase2(RunWriter& writer, double feature_dropout) {
  writer.save("phase2", 300,
              record_of({.seed = 3,
                         .step = 300,
                         .phase = 2,
                         .feature_dropout = feature_dropout,
                         .has_teacher = true}),
              {.metric = 20});
  writer.promote("phase2");
}

std::vector<std::string> begun_files(const HydraRun& run, const std::string& phase) {
  std::vector<std::string> names = list_folder(run.path() / phase);
  std::erase(names, "checkpoints");
  std::erase(names, "opponent_pool");
  return names;
}

Tensor read_tensor(const std::filesystem::path& file, const std::string& name) {
  const ChainReader chain = ChainReader::open(file);
  return chain.read(chain.reader().tensor(name));
}

std::vector<std::string> tensor_names(const std::filesystem::path& file) {
  const Reader reader = Reader::open(file);
  std::vector<std::string> names;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
      names.push_back(std::string(region.name()) + "/" + std::string(region.tensor(i).name()));
  }
  std::ranges::sort(names);
  return names;
}

Value metadata_of(const std::filesystem::path& file) {
  return parse_json(Reader::open(file).metadata_json());
}

bool has_file(const std::filesystem::path& folder, std::string_view name) {
  return std::filesystem::exists(folder / name);
}

}  // namespace thalia::test
