// What the original program's own tests ask of a checkpoint (test_checkpoint_io, _optimizations,
// _versioning, _state), asked of this library. Cases are named after theirs.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "boost_test.h"
#include "state/brain/brain_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/compress.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/metadata.h"

using namespace thalia;
using namespace thalia::test;

namespace {

// Reproducible values of about normal size that no shorter type holds exactly.
Tensor mock_weights(const Shape& shape, float scale = 0.1F) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  std::uint32_t state = 1;
  for (float& value : tensor.mutable_as<float>()) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 8) / 8388608.0F - 1.0F) * scale;
  }
  return tensor;
}

// Theirs: one region with w_ff 100x50, w_rec 100x100, bias, membrane, spikes, eligibility,
// bcm_theta; one pathway; 1000 steps.
BrainState mock_brain() {
  BrainState brain;
  BrainRegion& region = brain.regions.add("test_region", {.n_neurons = 100, .n_inputs = 50});
  region.weights()["w_ff"] = mock_weights({100, 50});
  region.weights()["w_rec"] = mock_weights({100, 100});
  region.weights()["bias"] = mock_weights({100});
  region.state["neuron_state"]["membrane"] = Tensor::zeros(DType::f32, {100});
  region.state["neuron_state"]["spikes"] = Tensor::zeros(DType::f32, {100});
  region.learning_state()["eligibility"] = Tensor::zeros(DType::f32, {100, 50});
  region.learning_state()["bcm_theta"] = 0.5;
  brain.pathways.add("test_pathway").weights()["w_pathway"] = mock_weights({50, 100});
  brain.training_steps = 1000;
  return brain;
}

const Tensor& w_ff(const BrainState& brain) {
  return brain.regions.at("test_region").find_path("weights.w_ff")->as_tensor();
}
Tensor& w_ff(BrainState& brain) {
  return brain.regions.at("test_region").find_path("weights.w_ff")->as_tensor();
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.as<float>();
  const auto y = b.as<float>();
  BOOST_REQUIRE(x.size() == y.size());
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::abs(double{x[i]} - double{y[i]}));
  return largest;
}

struct Files {
  TemporaryFolder folder;
  std::uint64_t save(const char* name, const BrainState& brain,
                     const BrainSaveOptions& options = {}) const {
    return BrainCheckpoint::save(brain, folder / name, options).file_bytes;
  }
  BrainState load(const char* name) const { return BrainCheckpoint::load(folder / name); }
};

BrainSaveOptions with_policy(const char* name) {
  return {.precision_policy = parse_precision_policy(name)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(original_checkpoint_io)

BOOST_AUTO_TEST_CASE(checkpoint_info_without_loading) {
  const Files files;
  BrainSaveOptions options;
  options.metadata["experiment"] = "test";
  const std::uint64_t bytes = files.save("a.thalia", mock_brain(), options);
  const BrainInfo info = BrainCheckpoint::info(files.folder / "a.thalia");
  BOOST_TEST(info.path == files.folder / "a.thalia");
  BOOST_TEST(info.file_bytes == bytes);
  BOOST_TEST(info.version == "1.0.0");
  BOOST_TEST(info.regions.size() == 1);
  BOOST_TEST(info.metadata.at("experiment").as_string() == "test");
}

BOOST_AUTO_TEST_CASE(checkpoint_validation) {
  const Files files;
  files.save("a.thalia", mock_brain());
  const BrainValidation validation = BrainCheckpoint::validate(files.folder / "a.thalia");
  BOOST_TEST(validation.valid);
  BOOST_TEST(validation.issues.empty());
}

BOOST_AUTO_TEST_CASE(corrupted_checkpoint_detection) {
  const Files files;
  files.save("a.thalia", mock_brain());
  {
    std::fstream file(files.folder / "a.thalia", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file << std::string(100, '\xFF');
  }
  const BrainValidation validation = BrainCheckpoint::validate(files.folder / "a.thalia");
  BOOST_TEST(!validation.valid);
  BOOST_TEST(!validation.issues.empty());
}

BOOST_AUTO_TEST_CASE(full_brain_checkpoint_roundtrip) {
  const Files files;
  BrainSaveOptions options;
  options.metadata["experiment"] = "full_brain";
  options.metadata["steps"] = 1000;
  BrainState brain = mock_brain();
  for (const char* name : {"striatum", "hippocampus"}) brain.regions.add(name, sample_region());
  files.save("a.thalia", brain, options);
  BOOST_TEST(BrainCheckpoint::info(files.folder / "a.thalia").regions.size() == 3);
  const BrainState loaded = files.load("a.thalia");
  BOOST_TEST(loaded.metadata.at("experiment").as_string() == "full_brain");
  BOOST_TEST(loaded.metadata.at("steps").as_int64() == 1000);
  BOOST_TEST((loaded.regions == brain.regions));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(original_checkpoint_optimizations)

BOOST_AUTO_TEST_CASE(save_load_with_compression_and_its_detection) {
  const Files files;
  const BrainState brain = mock_brain();
  struct {
    const char* name;
    Codec codec;
  } const kinds[] = {
      {"a.thalia", Codec::none}, {"a.thalia.zst", Codec::zstd}, {"a.thalia.lz4", Codec::lz4}};
  for (const auto& [name, codec] : kinds) {
    const BrainSaveResult saved = BrainCheckpoint::save(brain, files.folder / name);
    BOOST_TEST((saved.codec == codec), name);
    BOOST_TEST((w_ff(files.load(name)) == w_ff(brain)), name);
    // By content, whatever the name.
    std::filesystem::rename(files.folder / name, files.folder / "renamed");
    BOOST_TEST((w_ff(files.load("renamed")) == w_ff(brain)), name);
  }
}

BOOST_AUTO_TEST_CASE(compression_size_reduction) {
  const Files files;
  const auto plain = files.save("a.thalia", mock_brain(), {.sparse = SparseStorage::dense});
  const auto packed = files.save("a.thalia.zst", mock_brain(), {.sparse = SparseStorage::dense});
  BOOST_TEST(static_cast<double>(packed) < 0.95 * static_cast<double>(plain));
}

BOOST_AUTO_TEST_CASE(compress_decompress_file) {
  const Files files;
  write_file(files.folder / "a.txt", std::string(10'000, 'x') + "end");
  for (const char* name : {"a.txt.zst", "a.txt.lz4"}) {
    compress_checkpoint(files.folder / "a.txt", files.folder / name);
    BOOST_TEST(std::filesystem::file_size(files.folder / name) < 10'003u);
    decompress_checkpoint(files.folder / name, files.folder / "b.txt");
    BOOST_TEST(read_file(files.folder / "b.txt") == read_file(files.folder / "a.txt"));
  }
}

BOOST_AUTO_TEST_CASE(compression_error_handling) {
  const Files files;
  write_file(files.folder / "a.txt", "text");
  expect<UsageError>(
      [&] { compress_checkpoint(files.folder / "a.txt", files.folder / "a.unknown"); },
      ErrorCode::bad_argument);
  write_file(files.folder / "garbage.zst", "\x28\xB5\x2F\xFDgarbage that is no frame");
  BOOST_CHECK_THROW(decompress_checkpoint(files.folder / "garbage.zst", files.folder / "b.txt"),
                    FormatError);
  BOOST_TEST(!std::filesystem::exists(files.folder / "b.txt"));
}

BOOST_AUTO_TEST_CASE(save_load_with_fp16) {
  const Files files;
  const BrainState brain = mock_brain();
  const BrainSaveResult saved =
      BrainCheckpoint::save(brain, files.folder / "a.thalia", with_policy("fp16"));
  BOOST_TEST(saved.contents.precision_policy == "fp16");
  BOOST_TEST(saved.contents.precision_statistics.share(PrecisionKind::fp16).count > 0);
  const BrainState loaded = files.load("a.thalia");
  BOOST_TEST((w_ff(loaded).dtype() == DType::f32));
  BOOST_TEST(largest_difference(w_ff(loaded), w_ff(brain)) < 1e-3);
  BOOST_TEST(largest_difference(w_ff(loaded), w_ff(brain)) > 0);
}

BOOST_AUTO_TEST_CASE(fp16_file_size_reduction) {
  const Files files;
  const auto whole = files.save("a.thalia", mock_brain(), {.sparse = SparseStorage::dense});
  BrainSaveOptions options = with_policy("fp16");
  options.sparse = SparseStorage::dense;
  const auto half = files.save("b.thalia", mock_brain(), options);
  BOOST_TEST(static_cast<double>(half) < 0.85 * static_cast<double>(whole));
}

BOOST_AUTO_TEST_CASE(fp16_with_compression) {
  const Files files;
  const BrainState brain = mock_brain();
  files.save("a.thalia.zst", brain, with_policy("fp16"));
  const BrainState loaded = files.load("a.thalia.zst");
  BOOST_TEST((w_ff(loaded).dtype() == DType::f32));
  BOOST_TEST(largest_difference(w_ff(loaded), w_ff(brain)) < 1e-3);
}

BOOST_AUTO_TEST_CASE(exact_fp32_roundtrip) {
  const Files files;
  const BrainState brain = mock_brain();
  files.save("a.thalia", brain, with_policy("fp32"));
  BOOST_TEST((files.load("a.thalia").regions == brain.regions));
}

BOOST_AUTO_TEST_CASE(save_load_delta_checkpoint) {
  const Files files;
  BrainState brain = mock_brain();
  files.save("base.thalia", brain);
  w_ff(brain).mutable_as<float>()[7] += 0.5F;
  brain.regions.at("test_region").learning_state()["bcm_theta"] = 0.75;
  const BrainDeltaResult saved = BrainCheckpoint::save_delta(brain, files.folder / "a.delta.thalia",
                                                             files.folder / "base.thalia");
  BOOST_TEST(saved.file_bytes < saved.base_bytes);
  BOOST_TEST(saved.ratio() > 1);
  BOOST_TEST(saved.same > 0u);
  BOOST_TEST(saved.changed_regions == std::vector<std::string>{"test_region"},
             boost::test_tools::per_element());
  const BrainState loaded = files.load("a.delta.thalia");
  BOOST_TEST((loaded.regions == brain.regions));
  BOOST_TEST((loaded.pathways == brain.pathways));
  const BrainState lazy = BrainCheckpoint::load(files.folder / "a.delta.thalia", {.lazy = true});
  BOOST_TEST(!lazy.regions.is_loaded("test_region"));
  BOOST_TEST((lazy.regions == brain.regions));
  expect<UnsupportedError>(
      [&] { BrainCheckpoint::load(files.folder / "a.delta.thalia", {.resolve_deltas = false}); },
      ErrorCode::unsupported_feature);
  BOOST_TEST(BrainCheckpoint::validate(files.folder / "a.delta.thalia").valid);
}

BOOST_AUTO_TEST_CASE(delta_chain) {
  const Files files;
  BrainState brain = mock_brain();
  files.save("base.thalia", brain);
  std::string base = "base.thalia";
  for (const char* name : {"d1.delta.thalia", "d2.delta.thalia", "d3.delta.thalia.zst"}) {
    w_ff(brain).mutable_as<float>()[3] += 0.25F;
    ++brain.training_steps;
    BrainCheckpoint::save_delta(brain, files.folder / name, files.folder / base);
    const BrainState loaded = files.load(name);
    BOOST_TEST((w_ff(loaded) == w_ff(brain)), name);
    BOOST_TEST(loaded.training_steps == brain.training_steps);
    base = name;
  }
}

BOOST_AUTO_TEST_CASE(delta_keeps_small_changes_back_below_the_threshold) {
  const Files files;
  BrainState brain = mock_brain();
  files.save("base.thalia", brain);
  const Tensor before = w_ff(brain);
  w_ff(brain).mutable_as<float>()[3] += 1e-6F;
  w_ff(brain).mutable_as<float>()[4] += 0.5F;
  BrainCheckpoint::save_delta(brain, files.folder / "a.delta.thalia", files.folder / "base.thalia",
                              {.loss = {.threshold = 1e-5}});
  const BrainState loaded = files.load("a.delta.thalia");
  BOOST_TEST(w_ff(loaded).as<float>()[3] == before.as<float>()[3]);
  BOOST_TEST(w_ff(loaded).as<float>()[4] == w_ff(brain).as<float>()[4]);
}

BOOST_AUTO_TEST_CASE(delta_with_fp16_and_ultimate_compression) {
  const Files files;
  BrainState brain = mock_brain();
  const std::uint64_t base_bytes = files.save("base.thalia", brain);
  for (float& value : w_ff(brain).mutable_as<float>()) value += 0.01F;
  BrainDeltaOptions options;
  options.brain = with_policy("fp16");
  options.brain.save.compression.level = 9;
  // Theirs asks for 2 of all three together, against a base of full precision.
  for (const auto& [name, least] :
       {std::pair("a.delta.thalia", 1.5), std::pair("a.delta.thalia.zst", 2.0)}) {
    const BrainDeltaResult saved = BrainCheckpoint::save_delta(
        brain, files.folder / name, files.folder / "base.thalia", options);
    BOOST_TEST(static_cast<double>(base_bytes) > least * static_cast<double>(saved.file_bytes),
               base_bytes << " to " << saved.file_bytes << " " << name);
    const BrainState loaded = files.load(name);
    BOOST_TEST((w_ff(loaded).dtype() == DType::f32));
    BOOST_TEST(largest_difference(w_ff(loaded), w_ff(brain)) < 1e-3);
  }
}

BOOST_AUTO_TEST_CASE(missing_base_checkpoint) {
  const Files files;
  BrainState brain = mock_brain();
  const auto& error = expect<IoError>(
      [&] {
        BrainCheckpoint::save_delta(brain, files.folder / "a.delta.thalia",
                                    files.folder / "gone.thalia");
      },
      ErrorCode::io);
  BOOST_TEST(error.errno_value() == ENOENT);
  files.save("base.thalia", brain);
  BrainCheckpoint::save_delta(brain, files.folder / "a.delta.thalia", files.folder / "base.thalia");
  std::filesystem::remove(files.folder / "base.thalia");
  expect<IoError>([&] { files.load("a.delta.thalia"); }, ErrorCode::io);
}

BOOST_AUTO_TEST_CASE(corrupted_delta_checkpoint) {
  const Files files;
  write_file(files.folder / "a.delta.thalia", "CORRUPT DATA");
  BOOST_CHECK_THROW(files.load("a.delta.thalia"), Error);
}

BOOST_AUTO_TEST_CASE(invalid_precision_policy) {
  const auto& error =
      expect<UsageError>([] { parse_precision_policy("fp8"); }, ErrorCode::bad_argument);
  BOOST_TEST(std::string(error.what()).find("mixed") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(original_checkpoint_versioning)

BOOST_AUTO_TEST_CASE(checkpoint_includes_versions) {
  const Files files;
  files.save("a.thalia", mock_brain());
  const CheckpointMetadata metadata =
      checkpoint_metadata(BrainCheckpoint::info(files.folder / "a.thalia").metadata);
  BOOST_TEST(!metadata.thalia_version.empty());
  BOOST_TEST(metadata.version == "1.0.0");
  BOOST_TEST(metadata.created.size() == 20);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(original_checkpoint_state)

// Striatum: eligibility, last action, dopamine, value estimates. Hippocampus: sequence position and
// an episode buffer with tensors. Prefrontal: working memory. Pathways: replay buffer.
BOOST_AUTO_TEST_CASE(regions_and_pathways_with_activity) {
  BrainState brain;
  BrainRegion& striatum = brain.regions.add("striatum");
  striatum.weights()["d1_weights"] = mock_weights({20, 64});
  striatum.weights()["d2_weights"] = mock_weights({20, 64});
  striatum.learning_state()["eligibility"] = mock_weights({20, 64});
  striatum.state["exploration_state"]["last_action"] = 1;
  striatum.state["rpe_state"]["value_estimates"] = mock_weights({2});
  striatum.state["rpe_state"]["last_rpe"] = -0.25;
  striatum.neuromodulators()["tonic_dopamine"] = 0.3;
  BrainRegion& hippocampus = brain.regions.add("hippocampus");
  for (const char* name : {"w_ec_dg", "w_dg_ca3", "w_ca3_ca1", "w_ca3_ca3", "w_ec_ca1"})
    hippocampus.weights()[name] = mock_weights({16, 16});
  hippocampus.state["sequence_position"] = 7;
  Value& episodes = hippocampus.state["episode_buffer"] = Value::array();
  for (int i = 0; i < 3; ++i) {
    Value episode;
    episode["state"] = mock_weights({16});
    episode["context"] = i == 1 ? Value() : Value(mock_weights({4}));
    episode["action"] = i;
    episode["reward"] = 0.5 * i;
    episode["correct"] = i != 0;
    episode["metadata"] = Value::object();
    episode["sequence"] = Value::array();
    episode["sequence"].push_back(mock_weights({16}));
    episodes.push_back(std::move(episode));
  }
  brain.regions.add("prefrontal").state["working_memory"] = mock_weights({32});
  BrainRegion& replay = brain.pathways.add("replay");
  replay.state["replay_buffer"] = Value::array();
  for (int i = 0; i < 3; ++i) {
    Value entry;
    entry["pattern"] = mock_weights({8});
    entry["priority"] = 1.0 / (1 + i);
    entry["age"] = i;
    replay.state["replay_buffer"].push_back(std::move(entry));
  }
  replay.state["sleep_stage"] = "sws";
  replay.state["replay_active"] = true;
  replay.state["replay_count"] = 12;
  for (const char* name : {"delta", "theta", "alpha", "beta", "gamma"})
    brain.state["oscillators"][name]["phase"] = 0.125;
  brain.state["scheduler"]["events_processed"] = 100;
  brain.state["trial_state"]["spike_counts"]["cortex"] = 5;
  brain.state["sleep_state"]["stage_durations"]["sws"] = 1.5;
  const Files files;
  files.save("a.thalia", brain);
  const BrainState loaded = files.load("a.thalia");
  BOOST_TEST((loaded.regions == brain.regions));
  BOOST_TEST((loaded.pathways == brain.pathways));
  BOOST_TEST((loaded.state == brain.state));
}

BOOST_AUTO_TEST_SUITE_END()
