#include "boost_test.h"
#include "store/runs.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(store_gates)

BOOST_AUTO_TEST_CASE(a_gate_is_an_independent_copy_of_the_best) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = 2;
  config.phases[0].gate = "bc_best";
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 3; ++step)
    save_step(writer, step, {.metric = step == 2 ? 0.1 : 1.0});
  const PromoteResult result = writer.promote("train");
  BOOST_TEST(result.gate.step == 2);
  BOOST_TEST(result.gate.metric.value() == 0.1);
  const std::string best = read_file(run.phase() / "ckpt_train_step00000002.thalia");
  BOOST_TEST((read_file(run.path() / "gates/bc_best.thalia") == best));
  // What it was copied from is not evicted, also once it is no longer the best.
  for (std::uint64_t step = 4; step <= 6; ++step) save_step(writer, step, {.metric = 0.01});
  BOOST_TEST(run.run().list("train").front().protected_by.front() == "gate bc_best");
  std::filesystem::remove(run.phase() / "ckpt_train_step00000002.thalia");
  BOOST_TEST(run.run().load_gate("bc_best").entry.step == 2);
  BOOST_TEST(run.run().gates().size() == 1);
  BOOST_TEST((run.run().gates()[0] == result.gate));
  const std::string check =
      "cd '" + (run.path() / "gates").string() + "' && sha256sum --quiet -c *.sha256";
  BOOST_TEST(std::system(check.c_str()) == 0);
}

BOOST_AUTO_TEST_CASE(a_gate_is_replaced_by_force_alone) {
  const TemporaryRun run(bytes_config());
  RunWriter writer = run.writer();
  BOOST_CHECK_EXCEPTION(writer.promote("train"), UsageError, has_code(ErrorCode::not_found));
  save_step(writer, 1);
  save_step(writer, 2);
  BOOST_TEST(writer.promote("train").gate.step == 2);  // without a metric the latest
  BOOST_CHECK_EXCEPTION(writer.promote("train", {.step = 1}), UsageError,
                        has_code(ErrorCode::exists));
  BOOST_TEST(text_of(run.run().load_gate_bytes("train_best").bytes.bytes) == "checkpoint 2");
  writer.promote("train", {.step = 1, .force = true});
  BOOST_TEST(text_of(run.run().load_gate_bytes("train_best").bytes.bytes) == "checkpoint 1");
  BOOST_CHECK_EXCEPTION(writer.promote("train", {.step = 9, .gate = "other"}), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(writer.promote("train", {.gate = "../out"}), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(a_damaged_gate_fails_hard_and_so_does_one_without_a_digest) {
  for (const RunConfig& config : {small_config(), bytes_config()}) {
    const TemporaryRun run(config);
    RunWriter writer = run.writer();
    save_step(writer, 1);
    writer.promote("train");
    const auto load = [&] {
      config.is_thalia() ? void(run.run().load_gate("train_best"))
                         : void(run.run().load_gate_bytes("train_best"));
    };
    load();
    const std::filesystem::path gate = run.run().gate_path("train_best");
    const std::string digest = read_file(gate.string() + ".sha256");
    std::filesystem::remove(gate.string() + ".sha256");
    BOOST_CHECK_EXCEPTION(load(), IntegrityError,
                          says(ErrorCode::checksum_mismatch, "train_best", "no digest"));
    write_file(gate.string() + ".sha256", digest);
    damage(gate);
    BOOST_CHECK_EXCEPTION(load(), IntegrityError, has_code(ErrorCode::checksum_mismatch));
    BOOST_CHECK_EXCEPTION(run.run().load_gate_bytes("nothing"), UsageError,
                          has_code(ErrorCode::not_found));
  }
}

BOOST_AUTO_TEST_CASE(a_gate_that_was_being_replaced_is_the_old_one_or_the_new_one) {
  for (const bool is_new : {false, true}) {
    RunConfig config = bytes_config();
    config.phases[0].retention.keep_last = 1;
    const TemporaryRun run(config);
    const std::filesystem::path gate = run.run().gate_path("train_best");
    const std::filesystem::path meta = run.path() / "gates/train_best.meta.json";
    std::string before;
    {
      RunWriter writer = run.writer();
      save_step(writer, 1);
      writer.promote("train");
      before = read_file(meta);
      save_step(writer, 2);
      writer.promote("train", {.step = 2, .force = true});
      // As a crash leaves it: both are reported, and the digest is gone.
      std::string both = read_file(meta);
      both.replace(both.rfind('}'), 1, ",\"replaces\":" + before + "}");
      write_file(meta, both);
      std::filesystem::remove(gate.string() + ".sha256");
      if (!is_new) write_file(gate, "checkpoint 1");
    }
    const std::string expected = is_new ? "checkpoint 2" : "checkpoint 1";
    BOOST_TEST(text_of(run.run().load_gate_bytes("train_best").bytes.bytes) == expected);
    const RunWriter writer = run.writer();
    BOOST_TEST(run.run().gates()[0].step == (is_new ? 2u : 1u));
    BOOST_TEST(read_file(gate.string() + ".sha256").size() > 64u);
    BOOST_TEST(text_of(run.run().load_gate_bytes("train_best").bytes.bytes) == expected);
    if (!is_new) BOOST_TEST((read_file(meta) == before));
    // What is neither is refused.
    damage(gate);
    BOOST_CHECK_EXCEPTION(run.run().load_gate_bytes("train_best"), IntegrityError,
                          has_code(ErrorCode::checksum_mismatch));
  }
}

BOOST_AUTO_TEST_CASE(what_is_damaged_is_not_promoted) {
  const TemporaryRun run(bytes_config());
  RunWriter writer = run.writer();
  save_step(writer, 1);
  damage(run.phase() / "ckpt_train_step00000001.pt");
  BOOST_CHECK_EXCEPTION(writer.promote("train"), IntegrityError,
                        has_code(ErrorCode::checksum_mismatch));
  BOOST_TEST(list_folder(run.path() / "gates").empty());
}

BOOST_AUTO_TEST_CASE(a_delta_is_promoted_as_its_state) {
  RunConfig config = small_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 10};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  const TemporaryFolder files;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    save(files / "f.thalia", state_of_step(step));
    writer.save_file("train", step, files / "f.thalia");
  }
  writer.promote("train", {.step = 3});
  std::filesystem::remove_all(run.phase());
  const LoadedCheckpoint loaded = run.run().load_gate("train_best");
  BOOST_TEST(loaded.chain.depth() == 0);
  BOOST_TEST(text_of(loaded.chain.read(loaded.chain.reader().tensor("b")).bytes()) ==
             text_of(state_of_step(3).regions[0].tensors[1].payload));
}

BOOST_AUTO_TEST_SUITE_END()
