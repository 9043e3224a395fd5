// Deltas of brains: against files and against the snapshot that training still has, with each
// policy and compression, along chains.
#include "thalia/state/delta.h"
#include "boost_test.h"
#include "state/brain/brain_sample.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/compress.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(brain_delta)

namespace {

namespace fs = std::filesystem;

constexpr int kLinks = 10;

// What a load gives but for the metadata, which a save completes.
bool same_state(BrainState a, const BrainState& b) {
  a.metadata = b.metadata;
  return a == b;
}

Tensor& weights(BrainState& brain) {
  return brain.regions.at("cortex").weights()["large"].as_tensor();
}

BrainState first_state() {
  BrainState brain = sample_brain();
  brain.regions.at("cortex").weights()["large"] = floats({100, 200}, 0.001F);
  return brain;
}

// Training: weights and traces move, a scalar changes, and now and then a region grows.
void train(BrainState& brain, int step) {
  brain.training_steps += 10;
  for (float& value : weights(brain).mutable_as<float>())
    value *= 1 + 1e-4F * static_cast<float>(step);
  brain.regions.at("cortex").homeostatic()["thresholds"] = floats({10}, static_cast<float>(step));
  brain.regions.at("cortex").neuromodulators()["dopamine"] = 0.1 * step;
  brain.state["scheduler"]["events_processed"] = step;
  if (step == 4) brain.regions.add("grown", {.n_neurons = 2}).weights()["w"] = floats({2, 2});
  if (step == 6) weights(brain) = floats({110, 200}, 0.002F);
  if (step == 8) brain.regions.remove("grown");
}

template <typename Result>
SavedBrain saved(const BrainState& brain, const fs::path& path, const Result& result,
                 const BrainSaveOptions& options) {
  return {.state = brain,
          .path = path,
          .identity = result.identity,
          .digests = result.digests,
          .options = options};
}

struct Case {
  const char* name;
  const char* ending;
  BrainSaveOptions options;
};

std::vector<Case> cases() {
  return {{"as it is", ".thalia", {}},
          {"zstd chunks", ".thalia", {.save = {.compression = {.codec = Codec::zstd}}}},
          {"lz4 chunks", ".thalia", {.save = {.compression = {.codec = Codec::lz4}}}},
          {"wrapped", ".thalia.zst", {}},
          {"fp16", ".thalia", {.precision_policy = parse_precision_policy("fp16")}},
          {"fp16, wrapped", ".thalia.lz4", {.precision_policy = parse_precision_policy("fp16")}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_saves_a_chain_of_ten_without_reading_what_it_wrote) {
  for (const Case& each : cases()) {
    BOOST_TEST_CONTEXT(each.name) {
      const TemporaryFolder folder;
      const fs::path away = folder / "away";
      fs::create_directory(away);
      const auto name = [&](int i) { return std::to_string(i) + each.ending; };
      const bool exact = each.options.precision_policy.keeps_all();
      BrainState brain = first_state();
      BrainSaveOptions options = each.options;
      options.save.output.durability = Durability::none;
      SavedBrain base = saved(brain, folder / name(0),
                              BrainCheckpoint::save(brain, folder / name(0), options), options);
      fs::rename(folder / name(0), away / name(0));
      std::vector<BrainState> states{brain};
      for (int i = 1; i <= kLinks; ++i) {
        train(brain, i);
        const BrainDeltaResult result =
            BrainCheckpoint::save_delta(brain, folder / name(i), base, {.brain = options});
        BOOST_TEST(result.depth == static_cast<unsigned>(i));
        BOOST_TEST(result.same > 5u);
        BOOST_TEST(result.changed_regions.front() == "cortex");
        base = saved(brain, folder / name(i), result, options);
        states.push_back(brain);
        fs::rename(folder / name(i), away / name(i));
      }
      for (int i = 0; i <= kLinks; ++i) {
        BrainState& state = states[static_cast<std::size_t>(i)];
        BrainState loaded = BrainCheckpoint::load(away / name(i));
        BOOST_TEST(BrainCheckpoint::validate(away / name(i)).valid);
        BOOST_TEST(loaded.training_steps == state.training_steps);
        if (exact) {
          BOOST_TEST(same_state(loaded, state), i);
          continue;
        }
        // Halves, restored to floats: those of a save of the whole.
        BrainCheckpoint::save(state, folder / "whole.thalia",
                              {.precision_policy = each.options.precision_policy});
        BOOST_TEST(same_state(loaded, BrainCheckpoint::load(folder / "whole.thalia")), i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_and_a_snapshot_make_equal_deltas) {
  const TemporaryFolder folder;
  BrainSaveOptions options{.precision_policy = parse_precision_policy("mixed")};
  options.save.timestamp = 1;
  options.save.file_uuid.emplace();
  BrainState brain = first_state();
  const SavedBrain base =
      saved(brain, folder / "base.thalia",
            BrainCheckpoint::save(brain, folder / "base.thalia", options), options);
  train(brain, 1);
  BrainCheckpoint::save_delta(brain, folder / "a.thalia", folder / "base.thalia",
                              {.brain = options});
  BrainCheckpoint::save_delta(brain, folder / "b.thalia", base, {.brain = options});
  BOOST_TEST((read_file(folder / "a.thalia") == read_file(folder / "b.thalia")));
  BOOST_TEST(read_wrapper(folder / "a.thalia").has_value());
  BOOST_TEST(!BrainCheckpoint::save_delta(brain, folder / "c.thalia", base,
                                          {.brain = options, .pack = false})
                  .packed);
  BOOST_TEST(!read_wrapper(folder / "c.thalia").has_value());
}

BOOST_AUTO_TEST_CASE(a_snapshot_that_went_on_training_is_refused) {
  const TemporaryFolder folder;
  BrainState brain = first_state();
  const BrainSaveResult result = BrainCheckpoint::save(brain, folder / "base.thalia");
  weights(brain).mutable_as<float>()[3] = 5;  // before the copy was made
  const SavedBrain base = saved(brain, folder / "base.thalia", result, {});
  train(brain, 1);
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_delta(brain, folder / "a.thalia", base), UsageError,
                        says(ErrorCode::bad_argument, "base", "large"));
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_chain_keeps_the_policy_that_it_began_with) {
  const TemporaryFolder folder;
  const fs::path base = folder / "base.thalia";
  const fs::path delta = folder / "1.delta.thalia";
  const auto type_in = [&](const fs::path& path) {
    return Reader::open(path).region("cortex").at("large").dtype();
  };
  BrainState brain = first_state();
  const BrainSaveOptions half{.precision_policy = parse_precision_policy("fp16")};
  const BrainSaveResult full = BrainCheckpoint::save(brain, base, half);
  const SavedBrain snapshot = saved(brain, base, full, half);
  train(brain, 1);
  BrainCheckpoint::save(brain, folder / "whole.thalia", half);
  const BrainState expected = BrainCheckpoint::load(folder / "whole.thalia");
  for (const bool from_memory : {false, true}) {
    const BrainDeltaResult result = from_memory
                                        ? BrainCheckpoint::save_delta(brain, delta, snapshot)
                                        : BrainCheckpoint::save_delta(brain, delta, base);
    BOOST_TEST(result.contents.precision_policy == "fp16");
    BOOST_TEST(result.converted == 0u);
    BOOST_TEST((type_in(delta) == DType::f16));
    BOOST_TEST(result.file_bytes < full.file_bytes);
    BOOST_TEST(same_state(BrainCheckpoint::load(delta), expected));
  }
  // Along the chain, and unless told otherwise.
  const fs::path next = folder / "2.delta.thalia";
  BOOST_TEST(BrainCheckpoint::save_delta(brain, next, delta).contents.precision_policy == "fp16");
  const BrainDeltaResult other =
      BrainCheckpoint::save_delta(brain, next, delta, {.keep_policy = false});
  BOOST_TEST(other.contents.precision_policy == "keep");
  BOOST_TEST(other.converted > 0u);
  BOOST_TEST((type_in(next) == DType::f32));
  BOOST_TEST(same_state(BrainCheckpoint::load(next), brain));
}

BOOST_AUTO_TEST_CASE(a_policy_that_begins_with_a_delta_leaves_it_a_delta) {
  const TemporaryFolder folder;
  BrainState brain = first_state();
  BrainCheckpoint::save(brain, folder / "base.thalia");
  weights(brain).mutable_as<float>()[5] += 1;
  const BrainSaveOptions half{.precision_policy = parse_precision_policy("fp16"),
                              .save = {.compression = {.level = 9}}};
  const BrainDeltaResult result = BrainCheckpoint::save_delta(
      brain, folder / "d.delta.thalia", folder / "base.thalia", {.brain = half});
  BOOST_TEST(result.converted > 0u);
  // One of the 20,000 weights is stored.
  const Reader stored = Reader::open(folder / "d.delta.thalia");
  BOOST_TEST((stored.region("cortex").at("large").encoding() == Encoding::sparse_delta));
  BOOST_TEST(stored.region("cortex").at("large").nnz() == 1u);
  BrainCheckpoint::save(brain, folder / "whole.thalia",
                        {.precision_policy = half.precision_policy});
  BOOST_TEST(same_state(BrainCheckpoint::load(folder / "d.delta.thalia"),
                        BrainCheckpoint::load(folder / "whole.thalia")));
}

BOOST_AUTO_TEST_CASE(what_was_saved_in_the_background_can_be_a_base) {
  const TemporaryFolder folder;
  AsyncSaver saver;
  BrainState brain = first_state();
  const fs::path base = folder / "base.thalia";
  const BrainSaveResult result = BrainCheckpoint::save_async(saver, brain, base).wait();
  const SavedBrain snapshot = saved(brain, base, result, {});
  train(brain, 1);
  BrainCheckpoint::save_delta(brain, folder / "d.delta.thalia", snapshot);
  BOOST_TEST(same_state(BrainCheckpoint::load(folder / "d.delta.thalia"), brain));
}

BOOST_AUTO_TEST_CASE(deltas_are_saved_in_the_background_while_the_brain_changes) {
  const TemporaryFolder folder;
  AsyncSaver saver;
  BrainState brain = first_state();
  const fs::path base = folder / "base.thalia";
  SavedBrain before = saved(brain, base, BrainCheckpoint::save(brain, base), {});
  for (const char* name : {"1.delta.thalia", "2.delta.thalia", "3.delta.thalia.zst"}) {
    const fs::path path = folder / name;
    train(brain, 1);
    const BrainState now = brain;
    const SaveHandle<BrainDeltaResult> save =
        BrainCheckpoint::save_delta_async(saver, brain, path, before);
    train(brain, 2);
    const BrainDeltaResult result = save.wait();
    BOOST_TEST(result.file_bytes == fs::file_size(path));
    BOOST_TEST(result.same > 0u);
    BOOST_TEST(same_state(BrainCheckpoint::load(path), now));
    before = saved(now, path, result, {});
    brain = now;
  }
  // Against a file, and with what the brain borrows left where it is.
  train(brain, 3);
  const fs::path path = folder / "4.delta.thalia";
  const SaveHandle<BrainDeltaResult> save = BrainCheckpoint::save_delta_async(
      saver, brain, path, folder / "2.delta.thalia", {}, Snapshot::borrowed);
  BOOST_TEST(save.wait().depth == 3u);
  BOOST_TEST(same_state(BrainCheckpoint::load(path), brain));
  BOOST_CHECK_THROW(
      BrainCheckpoint::save_delta_async(saver, brain, folder / "5", folder / "none.thalia"),
      IoError);
}

BOOST_AUTO_TEST_CASE(a_delta_in_the_background_is_cancelled_and_fails_as_every_save) {
  const TemporaryFolder folder;
  AsyncSaver saver;
  BrainState brain = first_state();
  const fs::path base = folder / "base.thalia";
  const SavedBrain before = saved(brain, base, BrainCheckpoint::save(brain, base), {});
  train(brain, 1);
  BrainDeltaOptions options;
  std::stop_source stop;
  stop.request_stop();
  options.brain.save.work.cancel = stop.get_token();
  const SaveHandle<BrainDeltaResult> cancelled =
      BrainCheckpoint::save_delta_async(saver, brain, folder / "d.thalia", before, options);
  BOOST_CHECK_THROW(cancelled.wait(), CancelledError);
  const SaveHandle<BrainDeltaResult> failed =
      BrainCheckpoint::save_delta_async(saver, brain, folder / "none/d.thalia", base);
  BOOST_CHECK_THROW(failed.wait(), IoError);
  BOOST_TEST(list_folder(folder.path()) == std::vector<std::string>{"base.thalia"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(validate_says_that_a_base_is_gone) {
  const TemporaryFolder folder;
  BrainState brain = first_state();
  const fs::path base = folder / "base.thalia";
  const fs::path delta = folder / "d.delta.thalia";
  BrainCheckpoint::save(brain, base);
  train(brain, 1);
  BrainCheckpoint::save_delta(brain, delta, base);
  BOOST_TEST(BrainCheckpoint::validate(delta).valid);
  fs::create_directory(folder / "away");
  fs::rename(base, folder / "away/base.thalia");
  const BrainValidation gone = BrainCheckpoint::validate(delta);
  BOOST_TEST(!gone.valid);
  BOOST_REQUIRE(gone.issues.size() == 1u);
  BOOST_TEST(gone.issues[0].find(base.string()) != std::string::npos);
  BOOST_TEST(BrainCheckpoint::validate(delta, {}, {folder / "away"}).valid);
  BOOST_TEST(!BrainCheckpoint::validate(delta, {}, {folder / "away"}, within(folder / "x")).valid);
}

BOOST_AUTO_TEST_CASE(all_tensors_of_a_delta_count_against_one_limit) {
  const TemporaryFolder folder;
  BrainState brain;
  for (const char* name : {"a", "b", "c", "d"})
    brain.regions.add(name, {.n_neurons = 100}).weights()["w"] = floats({100, 100}, 1);
  BrainCheckpoint::save(brain, folder / "base.thalia");
  for (const char* name : {"a", "b", "c", "d"})
    brain.regions.at(name).weights()["w"] = floats({100, 100}, 1.5F);
  BrainCheckpoint::save_delta(brain, folder / "d.delta.thalia", folder / "base.thalia");
  constexpr std::uint64_t kTensor = 100 * 100 * sizeof(float);
  const auto within = [&](std::uint64_t bytes) {
    BrainLoadOptions options;
    options.chain.read.input.limits.max_allocation_bytes = bytes;
    return BrainCheckpoint::load(folder / "d.delta.thalia", options);
  };
  BOOST_TEST(same_state(within(100 * kTensor), brain));
  BOOST_CHECK_EXCEPTION(within(3 * kTensor), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(a_delta_cannot_replace_its_base_in_a_wrapper_either) {
  const TemporaryFolder folder;
  const BrainState brain = first_state();
  const fs::path path = folder / "a.thalia.zst";
  const BrainSaveResult result = BrainCheckpoint::save(brain, path);
  const auto refused = says(ErrorCode::bad_argument, "a.thalia.zst");
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_delta(brain, path, path), UsageError, refused);
  BOOST_CHECK_EXCEPTION(BrainCheckpoint::save_delta(brain, path, saved(brain, path, result, {})),
                        UsageError, refused);
  BOOST_TEST(same_state(BrainCheckpoint::load(path), brain));
}

BOOST_AUTO_TEST_CASE(a_delta_is_converted_and_cut_as_its_state) {
  const TemporaryFolder folder;
  BrainState brain = first_state();
  BrainCheckpoint::save(brain, folder / "base.thalia");
  train(brain, 1);
  const fs::path delta = folder / "a.delta.thalia.zst";
  BrainCheckpoint::save_delta(brain, delta, folder / "base.thalia");
  const ConvertResult converted = convert(delta, folder / "full.thalia");
  BOOST_TEST(converted.input_bytes > fs::file_size(folder / "base.thalia"));
  BOOST_TEST(!Reader::open(folder / "full.thalia").delta_base().has_value());
  BOOST_TEST(same_state(BrainCheckpoint::load(folder / "full.thalia"), brain));
  extract(delta, {"cortex"}, folder / "part.thalia");
  const BrainState part = BrainCheckpoint::load(folder / "part.thalia");
  BOOST_TEST((part.regions.at("cortex") == brain.regions.at("cortex")));
  convert(delta, folder / "half.thalia", {.precision = parse_precision_policy("fp16")});
  BOOST_TEST(
      (Reader::open(folder / "half.thalia").region("cortex").at("large").dtype() == DType::f16));
  BOOST_CHECK_THROW(convert(delta, folder / "all.safetensors"), UnsupportedError);  // csr
  // What they were made from is gone.
  BOOST_TEST(list_folder(folder.path()).size() == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
