#include "thalia/state/checkpoint.h"

#include <fstream>
#include <set>

#include "boost_test.h"
#include "state/brain/brain_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/async_save.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/state/metadata.h"
#include "thalia/version.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(brain_checkpoint)

namespace {

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

std::filesystem::path v01_data() {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/v01";
}

// What a load gives but for the metadata, which a save completes.
bool same_state(BrainState a, const BrainState& b) {
  a.metadata = b.metadata;
  return a == b;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_brain_comes_back_from_each_kind_of_file) {
  const BrainState brain = sample_brain();
  const TemporaryFolder folder;
  for (const char* name : {"a.thalia", "a.thalia.zst", "a.thalia.lz4"}) {
    BOOST_TEST_CONTEXT(name) {
      const auto path = folder.path() / name;
      const BrainSaveResult saved = BrainCheckpoint::save(brain, path);
      BOOST_TEST(saved.file_bytes == std::filesystem::file_size(path));
      BOOST_TEST(same_state(BrainCheckpoint::load(path), brain));
      BOOST_TEST(BrainCheckpoint::validate(path).valid);
    }
  }
  BOOST_TEST(names_in(folder.path()) ==
                 (std::set<std::string>{"a.thalia", "a.thalia.zst", "a.thalia.lz4"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(compression_is_what_the_name_or_the_option_says) {
  const BrainState brain = sample_brain();
  const TemporaryFolder folder;
  const auto start = [&](const char* name, const BrainSaveOptions& options) {
    BrainCheckpoint::save(brain, folder.path() / name, options);
    std::ifstream file(folder.path() / name, std::ios::binary);
    std::string bytes(4, '\0');
    file.read(bytes.data(), 4);
    return bytes;
  };
  BOOST_TEST(start("a.zst", {}) == "\x28\xB5\x2F\xFD");
  BOOST_TEST(start("a.lz4", {}) == "\x04\x22\x4D\x18");
  BOOST_TEST(start("b.zst", {.save = {.compression = {.codec = Codec::zstd, .level = 19}}}) ==
             "\x28\xB5\x2F\xFD");
  BOOST_TEST(start("a.thalia", {.save = {.compression = {.codec = Codec::zstd}}}) == "THAL");
  BOOST_TEST(Reader::open(folder.path() / "a.thalia").region("cortex").at("w_ff").chunk_count() ==
             1u);
  for (const SaveOptions& save :
       {SaveOptions{.compression = {.codec = Codec::none}},
        SaveOptions{.compression = {.codec = Codec::lz4}}, SaveOptions{.automatic_codec = true}})
    expect<UsageError>([&] { start("c.zst", {.save = save}); }, ErrorCode::bad_argument);
  BOOST_TEST(!names_in(folder.path()).contains("c.zst"));
}

BOOST_AUTO_TEST_CASE(metadata_is_completed_and_the_options_members_count) {
  BrainState brain = sample_brain();
  brain.metadata["version"] = "of another file";
  brain.metadata["stage"] = 2;
  BrainSaveOptions options;
  options.metadata["stage"] = 3;
  options.metadata["experiment"] = "language_learning";
  options.save.timestamp = 1'765'000'000;
  const TemporaryFolder folder;
  BrainCheckpoint::save(brain, folder.path() / "a.thalia", options);
  const BrainInfo info = BrainCheckpoint::info(folder.path() / "a.thalia");
  BOOST_TEST(info.metadata.at("stage").as_int64() == 3);
  BOOST_TEST(info.metadata.at("experiment").as_string() == "language_learning");
  BOOST_TEST(info.metadata.at("version").as_string() == "1.0.0");
  BOOST_TEST(info.metadata.at("thalia_version").as_string() == library_version());
  BOOST_TEST(info.metadata.at("created").as_string() == "2025-12-06T05:46:40Z");
  BOOST_TEST(info.metadata.at("description").as_string() == "everything");
  BOOST_TEST(info.metadata.at("best_loss").number_text() == "Infinity");
  const Value schema = to_value(CheckpointMetadata());
  for (const auto& [name, value] : schema.members())
    BOOST_TEST(info.metadata.find(name) != nullptr, name);
  BOOST_TEST(brain.metadata.at("stage").as_int64() == 2);  // the caller's is as it was
}

BOOST_AUTO_TEST_CASE(info_and_result_say_what_is_in_the_file) {
  BrainState brain = sample_brain();
  CheckpointMetadata metadata = checkpoint_metadata(brain.metadata);
  metadata.growth_history.push_back({.step = 10, .region = "cortex", .neurons_added = 2});
  brain.metadata = to_value(metadata);
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const BrainSaveResult saved = BrainCheckpoint::save(brain, path);
  BOOST_TEST(saved.contents.regions == 2);
  BOOST_TEST(saved.contents.pathways == 1);
  BOOST_TEST(saved.contents.connections == 2);
  BOOST_TEST(saved.total_neurons == 15);
  BOOST_TEST(saved.total_synapses == 124);
  BOOST_TEST(saved.contents.precision_policy == "keep");
  BOOST_TEST((saved.closing_checksum == Reader::open(path).closing_checksum()));
  const BrainInfo info = BrainCheckpoint::info(path);
  BOOST_TEST(info.version == "1.0.0");
  BOOST_TEST(info.file_bytes == saved.file_bytes);
  BOOST_TEST(info.total_neurons == 15);
  BOOST_TEST(info.total_synapses == 124);
  BOOST_TEST(info.training_steps == 1000);
  BOOST_TEST(info.connections == 2);
  BOOST_TEST(info.regions == brain.regions.names(), boost::test_tools::per_element());
  BOOST_TEST(info.pathways == brain.pathways.names(), boost::test_tools::per_element());
  BOOST_REQUIRE(info.growth_history.size() == 1);
  BOOST_TEST(*info.growth_history[0].step == 10);
}

BOOST_AUTO_TEST_CASE(a_precision_policy_narrows_the_file_and_is_undone_on_load) {
  const BrainState brain = sample_brain();
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const BrainSaveResult saved =
      BrainCheckpoint::save(brain, path, {.precision_policy = parse_precision_policy("fp16")});
  BOOST_TEST(saved.contents.precision_policy == "fp16");
  BOOST_TEST(saved.contents.precision_statistics.share(PrecisionKind::fp16).count > 3);
  const RegionView cortex = Reader::open(path).region("cortex");
  BOOST_TEST((cortex.at("w_ff").dtype() == DType::f16));
  BOOST_TEST((cortex.at("membrane").dtype() == DType::f32));
  BOOST_TEST(same_state(BrainCheckpoint::load(path), brain));  // its values are exact in f16
  const BrainState stored = BrainCheckpoint::load(path, {.restore = false});
  BOOST_TEST(
      (stored.regions.at("cortex").find_path("weights.w_ff")->as_tensor().dtype() == DType::f16));
  BOOST_TEST(stored.metadata.at("precision_policy").as_string() == "fp16");
}

BOOST_AUTO_TEST_CASE(what_a_policy_made_of_numbers_is_told_by_every_save) {
  const TemporaryFolder folder;
  BrainState brain = sample_brain();
  brain.regions.at("cortex").state["weights"]["tiny"] =
      Tensor::copy_of({5}, std::array{1e-9f, 1e-6f, 1e9f, 0.1f, 0.0f});
  // A pattern that fits nothing is not an error of a training.
  const BrainSaveOptions options{.precision_policy =
                                     parse_precision_policy(R"("none.*"=bf16,"cortex/*"=fp16)")};
  AsyncSaver saver;
  const BrainSaveResult now = BrainCheckpoint::save(brain, folder / "a.thalia", options);
  const BrainSaveResult later =
      BrainCheckpoint::save_async(saver, brain, folder / "b.thalia", options).wait();
  const BrainDeltaResult delta =
      BrainCheckpoint::save_delta(brain, folder / "c.thalia", folder / "a.thalia");
  for (const RoundingLoss& rounding :
       {now.contents.rounding, later.contents.rounding, delta.contents.rounding}) {
    BOOST_TEST(rounding.zeroed.count == 1u);
    BOOST_TEST(rounding.subnormal.count == 1u);
    BOOST_TEST(rounding.infinite.count == 1u);
    BOOST_TEST(rounding.nan.count == 0u);
    BOOST_TEST(rounding.infinite.worst == "cortex/tiny");
    BOOST_TEST(rounding.largest_error_tensor == "cortex/tiny");
    BOOST_TEST(rounding.largest_error > 0.0);
  }
  BOOST_TEST(BrainCheckpoint::save(brain, folder / "d.thalia").contents.rounding.zeroed.count ==
             0u);
}

BOOST_AUTO_TEST_CASE(a_brain_may_change_while_it_is_saved_in_the_background) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  AsyncSaver saver;
  BrainState brain = sample_brain();
  BrainSaveOptions options{.precision_policy = parse_precision_policy("fp16")};
  BrainCheckpoint::reserve(saver, brain, path, options);
  const std::uint64_t reserved = saver.snapshot_bytes();
  BOOST_TEST(reserved > 0u);
  BOOST_TEST(!std::filesystem::exists(path));
  const SaveHandle<BrainSaveResult> save = BrainCheckpoint::save_async(saver, brain, path, options);
  BOOST_TEST(saver.snapshot_bytes() == reserved);
  for_each_tensor(brain.regions.at("cortex").state, [](const std::string&, Tensor& tensor) {
    std::ranges::fill(tensor.mutable_bytes(), std::byte{0xFF});
  });
  brain.regions.remove("cortex");
  const std::uint64_t file_bytes = save.wait().file_bytes;
  BOOST_TEST(file_bytes == std::filesystem::file_size(path));
  BOOST_TEST(same_state(BrainCheckpoint::load(path), sample_brain()));
}

BOOST_AUTO_TEST_CASE(a_file_with_frames_is_saved_in_the_background_too) {
  const TemporaryFolder folder;
  AsyncSaver saver;
  for (const Snapshot snapshot : {Snapshot::copy, Snapshot::borrowed}) {
    for (const char* name : {"a.thalia.zst", "a.thalia.lz4"}) {
      BrainState brain = sample_brain();
      const auto path = folder.path() / name;
      BrainCheckpoint::reserve(saver, brain, path);
      const SaveHandle<BrainSaveResult> save =
          BrainCheckpoint::save_async(saver, brain, path, {}, snapshot);
      // Tensors that are shared get other bytes.
      for_each_tensor(brain.regions.at("cortex").state, [](const std::string&, Tensor& tensor) {
        std::ranges::fill(tensor.mutable_bytes(), std::byte{0xFF});
      });
      const BrainSaveResult result = save.wait();
      BOOST_TEST(result.file_bytes == std::filesystem::file_size(path));
      BOOST_TEST((result.codec == (path.extension() == ".zst" ? Codec::zstd : Codec::lz4)));
      BOOST_TEST(same_state(BrainCheckpoint::load(path), sample_brain()));
      std::filesystem::remove(path);
      BOOST_TEST(list_folder(folder.path()).empty());
    }
  }
  std::stop_source stop;
  stop.request_stop();
  const SaveHandle<BrainSaveResult> cancelled =
      BrainCheckpoint::save_async(saver, sample_brain(), folder.path() / "b.thalia.zst",
                                  {.save = {.work = {.cancel = stop.get_token()}}});
  BOOST_CHECK_THROW(cancelled.wait(), CancelledError);
  saver.wait_all();
  BOOST_TEST(list_folder(folder.path()).empty());
  expect<UsageError>(
      [&] {
        BrainCheckpoint::save_async(saver, sample_brain(), folder.path() / "b.thalia.zst",
                                    {.save = {.compression = {.codec = Codec::lz4}}});
      },
      ErrorCode::bad_argument);
}

BOOST_AUTO_TEST_CASE(larger_files_than_the_limit_are_refused_and_the_error_says_how_to_raise_it) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  BrainCheckpoint::save(sample_brain(), path);
  const auto& error = expect<FormatError>(
      [&] { BrainCheckpoint::load(path, {.max_file_bytes = 1000}); }, ErrorCode::limit_exceeded);
  BOOST_TEST(std::string(error.what()).find("max_file_bytes") != std::string::npos);
  BOOST_TEST(std::string(error.what()).find("raise it") != std::string::npos);
  BOOST_TEST(BrainLoadOptions().max_file_bytes == 10'000'000'000u);
  // What lies after the end that the header names is of the file, too.
  const std::uint64_t size = std::filesystem::file_size(path);
  const auto load = [&](std::uint64_t most) {
    BrainCheckpoint::load(path, {.max_file_bytes = most});
    BrainCheckpoint::load(path, {.chain = {.read = {.input = {.limits = {.max_file_bytes = most}}}},
                                 .max_file_bytes = 0});
  };
  load(size);
  write_file(path, read_file(path) + std::string(1000, '\0'));
  expect<FormatError>([&] { load(size + 999); }, ErrorCode::limit_exceeded);
  load(size + 1000);
}

BOOST_AUTO_TEST_CASE(an_error_leaves_the_old_file_and_nothing_beside_it) {
  const TemporaryFolder folder;
  const BrainState brain = sample_brain();
  BrainState broken = sample_brain();
  broken.metadata["tensor"] = floats({1});
  for (const char* name : {"a.thalia", "a.thalia.zst"}) {
    const auto path = folder.path() / name;
    BrainCheckpoint::save(brain, path);
    expect<UsageError>([&] { BrainCheckpoint::save(broken, path); }, ErrorCode::bad_argument);
    BrainSaveOptions cancelled;
    std::stop_source stop;
    stop.request_stop();
    cancelled.save.work.cancel = stop.get_token();
    expect<CancelledError>([&] { BrainCheckpoint::save(brain, path, cancelled); },
                           ErrorCode::cancelled);
    BOOST_TEST(same_state(BrainCheckpoint::load(path), brain));
  }
  BOOST_TEST(names_in(folder.path()) == (std::set<std::string>{"a.thalia", "a.thalia.zst"}),
             boost::test_tools::per_element());
}

// Files that the original program wrote; what is in them, its own reader said (tests/data/v01).
BOOST_AUTO_TEST_CASE(files_of_version_0_1_are_loaded_as_the_original_program_does) {
  for (const char* name : {"full.thalia", "full.thalia.lz4"}) {
    const auto path = v01_data() / name;
    const BrainState brain = BrainCheckpoint::load(path);
    BOOST_TEST(
        brain.regions.names() == (std::vector<std::string>{"cortex", "striatum", "empty_region",
                                                           "a_region_name_longer_than_31_by"}),
        boost::test_tools::per_element());
    BOOST_TEST(brain.pathways.contains("cortex_to_striatum"));
    BOOST_TEST(brain.training_steps == 1000);
    const BrainRegion& cortex = brain.regions.at("cortex");
    BOOST_TEST(cortex.find_path("learning_state.stp.u")->is_tensor());
    BOOST_TEST(cortex.find_path("neuromodulator_state.dopamine")->as_double() == 0.5);
    BOOST_TEST(cortex.find_path("weights.w_rec_sparse")->as_tensor().is_dense());
    BOOST_TEST(brain.state.at("theta").at("frequency").as_double() == 8);
    const BrainInfo info = BrainCheckpoint::info(path);
    BOOST_TEST(info.version == "0.1.0");
    BOOST_TEST(info.total_neurons == 10);
    BOOST_TEST(info.total_synapses == 458);
    BOOST_TEST(info.pathways.size() == 1);
    BOOST_TEST(info.growth_history.size() == 2);
    BOOST_TEST(info.metadata.at("experiment").as_string() == "vectors");
    BOOST_TEST(BrainCheckpoint::validate(path).valid);
  }
  const BrainState one = BrainCheckpoint::load(v01_data() / "full.thalia", {.regions = {"cortex"}});
  BOOST_TEST(one.regions.size() == 1);
  BOOST_TEST(one.pathways.empty());
  expect<UsageError>(
      [] { BrainCheckpoint::load(v01_data() / "full.thalia", {.regions = {"cortx"}}); },
      ErrorCode::not_found);
}

BOOST_AUTO_TEST_CASE(connections_that_are_left_out_are_named) {
  const TemporaryFolder folder;
  BrainState brain;
  for (const char* name : {"cortex", "striatum", "a region with a name of more than 31 bytes"})
    brain.regions.add(name, {.n_neurons = 2});
  for (const char* source : {"cortex", "striatum"}) {
    for (const std::string& target : brain.regions.names())
      brain.connectivity.add({source, target, floats({2, 2})});
  }
  const std::vector<std::string> wanted{
      "cortex->striatum", "cortex->a region with a name of more than 31 bytes", "striatum->cortex",
      "striatum->striatum", "striatum->a region with a name of more than 31 bytes"};
  const auto file = folder / "brain.thalia", old = folder / "old.thalia";
  BrainCheckpoint::save(brain, file);
  migrate(file, old, {0, 1}, {.across_major = true});
  for (const auto& path : {file, old}) {
    BrainLoadReport report{{"of an earlier load"}};
    const BrainState some = BrainCheckpoint::load(path, {.regions = {"cortex"}}, &report);
    // 0.1 has short names only.
    if (path == file)
      BOOST_TEST(report.connections_left_out == wanted, boost::test_tools::per_element());
    BOOST_TEST(report.connections_left_out.size() == wanted.size());
    BOOST_TEST(report.connections_left_out.front() == wanted.front());
    BOOST_TEST(some.connectivity.size() == 1);
    BOOST_TEST(some.connectivity.find("cortex", "cortex") != nullptr);
    for (const BrainLoadOptions& options :
         {BrainLoadOptions{}, BrainLoadOptions{.regions = {"cortex"}, .lazy = true}}) {
      BOOST_TEST(BrainCheckpoint::load(path, options, &report).connectivity.size() == 6);
      BOOST_TEST(report.connections_left_out.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_save_refuses_shapes_that_contradict_the_region) {
  const TemporaryFolder folder;
  BrainState brain;
  brain.regions.add("r", {.n_neurons = 10}).homeostatic()["thresholds"] = floats({5});
  const auto path = folder / "brain.thalia";
  const auto is_refused =
      says(ErrorCode::size_mismatch, "'r'", "homeostatic.thresholds", "[5]", "[10]");
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save(brain, path), UsageError, is_refused);
  AsyncSaver saver;
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_async(saver, brain, path), UsageError, is_refused);
  BOOST_TEST(std::filesystem::is_empty(folder.path()));
  BrainState good;
  good.regions.add("r", {.n_neurons = 10});
  BrainCheckpoint::save(good, path);
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_delta(brain, folder / "d.thalia", path), UsageError,
                        is_refused);
}

BOOST_AUTO_TEST_CASE(what_is_odd_about_a_file_is_told) {
  std::vector<std::string> warnings;
  BrainLoadOptions options;
  options.on_warning = [&](const std::string& warning) { warnings.push_back(warning); };
  BrainCheckpoint::load(v01_data() / "full.thalia", options);
  BOOST_TEST(warnings.empty());
  BrainCheckpoint::load(v01_data() / "flags_reserved_nonzero.thalia", options);
  BOOST_TEST(!warnings.empty());
}

BOOST_AUTO_TEST_CASE(broken_files_of_version_0_1_are_refused) {
  // The original program loads this one as an empty state.
  const auto path = v01_data() / "neg_index_offset_oob.thalia";
  BOOST_CHECK_THROW(BrainCheckpoint::load(path), FormatError);
  const BrainValidation validation = BrainCheckpoint::validate(path);
  BOOST_TEST(!validation.valid);
  BOOST_TEST(validation.issues.size() == 1);
  // Its deltas are Python pickles, which nothing here opens.
  BOOST_CHECK_THROW(BrainCheckpoint::load(v01_data() / "delta_stage1.delta.thalia"),
                    UnsupportedError);
}

BOOST_AUTO_TEST_CASE(validate_collects_what_is_wrong_and_never_throws) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  BrainCheckpoint::save(sample_brain(), path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.write("\xFF\xFF\xFF\xFF", 4);
  }
  const BrainValidation damaged = BrainCheckpoint::validate(path);
  BOOST_TEST(!damaged.valid);
  BOOST_TEST(!damaged.issues.empty());
  const BrainValidation gone = BrainCheckpoint::validate(folder.path() / "gone.thalia");
  BOOST_TEST(!gone.valid);
  BOOST_REQUIRE(gone.issues.size() == 1);
  BOOST_TEST(gone.issues[0].find("gone.thalia") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
