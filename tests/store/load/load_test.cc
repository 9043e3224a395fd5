#include <cerrno>

#include "boost_test.h"
#include "store/runs.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_load)

namespace {

struct Saved : TemporaryRun {
  explicit Saved(const RunConfig& config = small_config()) : TemporaryRun(config) {
    RunWriter writing = writer();
    for (std::uint64_t step = 1; step <= 4; ++step) save_step(writing, step);
  }
  std::filesystem::path file(std::uint64_t step) const {
    return phase() / run().file_name("train", step);
  }
};

LoadOptions collecting(std::vector<std::string>& warnings) {
  LoadOptions options;
  options.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_latest_is_loaded_with_its_digest_checked) {
  const Saved saved;
  std::vector<std::string> warnings;
  const LoadedCheckpoint loaded = saved.run().load("train", collecting(warnings));
  BOOST_TEST(loaded.entry.step == 4);
  BOOST_TEST(loaded.chain.reader().header().training_steps == 4);
  BOOST_TEST(loaded.attempts.size() == 1);
  BOOST_TEST(warnings.empty());
  BOOST_TEST(saved.run().load("train", {.step = 2}).entry.step == 2);
  BOOST_CHECK_EXCEPTION(saved.run().load("train", {.step = 7}), UsageError,
                        says(ErrorCode::not_found, "step 7"));
  BOOST_CHECK_EXCEPTION(saved.run().load("other"), UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(a_damaged_latest_falls_back_through_all) {
  for (const RunConfig& config : {small_config(), bytes_config()}) {
    const Saved saved(config);
    const auto load = [&](const LoadOptions& options) {
      if (!config.is_thalia()) return saved.run().load_bytes("train", options).entry.step;
      return saved.run().load("train", options).entry.step;
    };
    std::vector<std::string> warnings;
    damage(saved.file(4));
    std::filesystem::resize_file(saved.file(3), 5);
    BOOST_TEST(load(collecting(warnings)) == 2);
    BOOST_TEST(warnings.size() == 2);
    BOOST_TEST(warnings[0].find("step00000004") != std::string::npos);
    damage(saved.file(2));
    damage(saved.file(1));
    const auto error =
        expect<NoValidCheckpointError>([&] { load({}); }, ErrorCode::checksum_mismatch);
    BOOST_TEST(error.attempts().size() == 4);
    for (std::uint64_t step = 1; step <= 4; ++step)
      BOOST_TEST(std::string(error.what()).find(saved.file(step).string()) != std::string::npos);
    // One that is asked for is not replaced by another.
    BOOST_CHECK_EXCEPTION(load({.step = 4}), IntegrityError,
                          has_code(ErrorCode::checksum_mismatch));
  }
}

BOOST_AUTO_TEST_CASE(every_byte_counts) {
  const Saved saved(bytes_config());
  const std::string whole = read_file(saved.file(4));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    write_file(saved.file(4), changed);
    BOOST_TEST(saved.run().load_bytes("train").entry.step == 3);
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(saved.file(4), whole.substr(0, length));
    BOOST_TEST(saved.run().load_bytes("train").entry.step == 3);
  }
  write_file(saved.file(4), whole);
  BOOST_TEST(text_of(saved.run().load_bytes("train").bytes.bytes) == "checkpoint 4");
}

BOOST_AUTO_TEST_CASE(a_missing_digest_is_a_warning_and_the_file_vouches_for_itself) {
  const Saved saved;
  std::filesystem::remove(saved.file(4).string() + ".sha256");
  std::vector<std::string> warnings;
  BOOST_TEST(saved.run().load("train", collecting(warnings)).entry.step == 4);
  BOOST_TEST(warnings.size() == 1);
  damage(saved.file(4));
  BOOST_TEST(saved.run().load("train", collecting(warnings)).entry.step == 3);
}

BOOST_AUTO_TEST_CASE(a_digest_that_is_none_is_a_failure) {
  const Saved saved;
  for (const char* const text : {"", "x", "0123  ckpt_train_step00000004.thalia\n"}) {
    write_file(saved.file(4).string() + ".sha256", text);
    std::vector<std::string> warnings;
    BOOST_TEST(saved.run().load("train", collecting(warnings)).entry.step == 3);
    BOOST_TEST(warnings.size() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_server_reads_what_it_touches_alone) {
  const Saved saved;
  std::filesystem::remove(saved.file(4).string() + ".sha256");
  std::vector<std::string> warnings;
  LoadOptions options = collecting(warnings);
  options.check = LoadCheck::on_touch;
  const LoadedCheckpoint loaded = saved.run().load("train", options);
  BOOST_TEST(loaded.entry.step == 4);
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(a_delta_whose_base_is_damaged_is_passed_over) {
  RunConfig config = small_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 3};
  const TemporaryRun run(config);
  {
    RunWriter writer = run.writer();
    const TemporaryFolder files;
    for (std::uint64_t step = 1; step <= 5; ++step) {
      save(files / "f.thalia", state_of_step(step));
      writer.save_file("train", step, files / "f.thalia");
    }
  }
  // 1 and 4 are full, 2 and 3 based on 1, 5 on 4.
  damage(run.phase() / "ckpt_train_step00000004.thalia");
  const LoadedCheckpoint loaded = run.run().load("train");
  BOOST_TEST(loaded.entry.step == 3);
  BOOST_TEST(loaded.chain.depth() == 2);
  std::filesystem::remove(run.phase() / "ckpt_train_step00000001.thalia");
  BOOST_CHECK_EXCEPTION(run.run().load("train"), NoValidCheckpointError,
                        has_code(ErrorCode::checksum_mismatch));
}

BOOST_AUTO_TEST_CASE(bytes_are_no_states) {
  const Saved saved(bytes_config());
  BOOST_CHECK_EXCEPTION(saved.run().load("train"), UsageError,
                        says(ErrorCode::wrong_state, "'pt'"));
  BOOST_TEST(Saved().run().load_bytes("train").bytes.bytes.size() > 0);
}

BOOST_AUTO_TEST_CASE(strict_loading_tells_all_that_does_not_fit_at_once) {
  const Saved saved;
  const ChainReader chain = saved.run().load("train").chain;
  check_strictly(chain, std::vector<ExpectedTensor>{{"w", {64, 64}, DType::f32},
                                                    {"model/b", {64}, DType::f32}});
  const std::vector<ExpectedTensor> other{
      {"model/w", {64, 32}, DType::f32}, {"v", {1}, DType::f32}, {"u", {1}, DType::f32}};
  BOOST_CHECK_EXCEPTION(check_strictly(chain, other), UsageError,
                        says(ErrorCode::shape_mismatch, "2 missing in the checkpoint: u, v",
                             "1 unexpected", "model/b", "1 of another shape", "64, 32"));
  const ModelFit fit = compare_with_model(chain, other);
  BOOST_TEST((fit.missing == std::vector<std::string>{"u", "v"}));
  BOOST_TEST((fit.unexpected == std::vector<std::string>{"model/b"}));
  BOOST_TEST(fit.different.size() == 1U);
  BOOST_TEST(!fit.ok());
  BOOST_TEST(compare_with_model(chain, other, {"model.w"}).unexpected.empty());
  // Some are held against the model, the others are not its business.
  check_strictly(chain, std::vector<ExpectedTensor>{{"w", {64, 64}, DType::f32}}, {"model.w"});
}

BOOST_AUTO_TEST_CASE(a_restored_file_is_the_same_and_a_delta_is_whole) {
  const Saved saved;
  const TemporaryFolder out;
  const RestoreResult result = restore(saved.run(), "train", out / "f.thalia");
  BOOST_TEST(result.entry.step == 4);
  BOOST_TEST((read_file(out / "f.thalia") == read_file(saved.file(4))));
  BOOST_CHECK_EXCEPTION(
      restore(saved.run(), "train", out / "f.thalia", {.output = {.replace = false}}), UsageError,
      has_code(ErrorCode::exists));
  damage(saved.file(4));
  BOOST_TEST(restore(saved.run(), "train", out / "f.thalia").entry.step == 3);
}

BOOST_AUTO_TEST_SUITE_END()
