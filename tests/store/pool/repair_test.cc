// Each kind of what can be wrong with a run: it is found, and what can be repaired without a loss
// is repaired by the next one who may.
#include <algorithm>

#include "store/pool/runs.h"
#include "thalia/store/repair.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_repair)

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Both phases, both gates and a pool of two.
class PlayedRun : public HydraRun {
 public:
  explicit PlayedRun(const RunConfig& config = hydra_config()) : HydraRun(config) {
    RunWriter writing = writer();
    play_phase1(writing);
    transition(writing, hydra_transitions().at(0));
    play_phase2(writing);
    transition(writing, hydra_transitions().at(1));
    Pool pool(writing);
    for (const std::uint64_t step : {500, 1000}) {
      save(writing, step);
      pool.add("phase3", step, {.mu = 30, .sigma = 4});
    }
  }
  fs::path checkpoint(std::uint64_t step) const {
    return path() / "phase1" / "checkpoints" /
           (step == 100 ? "ckpt_phase1_step00000100.thalia" : "ckpt_phase1_step00000200.thalia");
  }
  fs::path checkpoints() const { return path() / "phase1" / "checkpoints"; }
  StoreReport verify(const StoreCheckOptions& options = {}) const {
    return verify_run(run(), options);
  }
  StoreReport repair() const {
    RunWriter writing = writer();
    return repair_run(writing);
  }
};

Names kinds(const StoreReport& report) {
  Names found;
  for (const StoreFinding& finding : report.findings) found.push_back(finding.kind);
  std::ranges::sort(found);
  return found;
}

void damage(const fs::path& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  write_file(path, bytes);
}

// What is done to a run while a writer is open leads to one finding of this kind, which repairing
// puts right.
template <typename Harm>
void check_repaired(const PlayedRun& run, const std::string& kind, Severity severity,
                    const Harm& harm) {
  RunWriter writer = run.writer();
  harm();
  StoreReport found = run.verify();
  std::erase_if(found.findings, [](const StoreFinding& finding) { return finding.kind == "lock"; });
  BOOST_TEST((kinds(found) == Names{kind}));
  BOOST_TEST((found.findings.at(0).severity == severity));
  BOOST_TEST(found.findings.at(0).can_be_repaired);
  BOOST_TEST(!found.findings.at(0).is_repaired);
  BOOST_TEST(found.ok() == (severity != Severity::error));
  const StoreReport repaired = repair_run(writer);
  BOOST_TEST((kinds(repaired) == Names{kind}));
  BOOST_TEST(repaired.findings.at(0).is_repaired);
  BOOST_TEST(repaired.ok());
  BOOST_TEST(repair_run(writer).findings.empty());
}

// One finding, which stays.
void check_stays(const PlayedRun& run, const std::string& kind, const fs::path& path) {
  for (const StoreReport& report : {run.verify(), run.repair(), run.verify()}) {
    BOOST_TEST((kinds(report) == Names{kind}));
    BOOST_TEST(report.findings.at(0).path == path);
    BOOST_TEST(!report.findings.at(0).can_be_repaired);
    BOOST_TEST(!report.findings.at(0).message.empty());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_wrong_with_a_run_that_was_played) {
  const PlayedRun run;
  std::uint64_t last = 0, total = 0;
  StoreCheckOptions options;
  options.work.progress = [&](std::uint64_t done, std::uint64_t of) {
    BOOST_TEST(done >= last);
    last = done;
    total = of;
  };
  const StoreReport report = run.verify(options);
  for (const StoreFinding& finding : report.findings)
    BOOST_TEST_MESSAGE(finding.kind << " " << finding.path << " " << finding.message);
  BOOST_TEST(report.findings.empty());
  BOOST_TEST(report.ok());
  // Five checkpoints, two gates, two versions, and what two phases began with.
  BOOST_TEST(report.checkpoints == 5u + 2 + 2 + 4);
  BOOST_TEST(report.bytes_checked >= 13u * 1000);
  BOOST_TEST(last == total);
  BOOST_TEST(run.repair().findings.empty());
}

BOOST_AUTO_TEST_CASE(a_phase_is_checked_by_itself) {
  const PlayedRun run;
  damage(run.path() / "gates" / "bc_best.thalia");
  BOOST_TEST(run.verify({.phase = "phase1"}).findings.empty());
  BOOST_TEST(run.verify({.phase = "phase1"}).checkpoints == 2u);
  expect<UsageError>([&] { run.verify({.phase = "phase8"}); }, ErrorCode::not_found);
}

BOOST_AUTO_TEST_CASE(bytes_that_changed_are_damage_wherever_they_are) {
  const PlayedRun run;
  for (const fs::path& path :
       {run.checkpoint(100), run.path() / "gates" / "bc_best.thalia",
        run.pool() / "pool_v0001_step00000500.thalia", run.path() / "phase2" / "start.thalia"}) {
    const std::string whole = read_file(path);
    damage(path);
    const StoreReport report = run.verify();
    BOOST_TEST((kinds(report) == Names{"damaged"}));
    BOOST_TEST(report.findings.at(0).path == path);
    BOOST_TEST(!report.ok());
    BOOST_TEST(run.verify({.quick = true}).findings.empty());
    write_file(path, whole);
  }
  BOOST_TEST(run.verify().findings.empty());
}

BOOST_AUTO_TEST_CASE(damage_is_told_of_and_not_touched) {
  const PlayedRun run;
  damage(run.checkpoint(100));
  const std::string bytes = read_file(run.checkpoint(100));
  check_stays(run, "damaged", run.checkpoint(100));
  BOOST_TEST(read_file(run.checkpoint(100)) == bytes);
}

BOOST_AUTO_TEST_CASE(a_digest_that_is_missing_is_made_of_what_vouches_for_itself) {
  const PlayedRun run;
  const fs::path digest = run.checkpoint(100).string() + ".sha256";
  const std::string text = read_file(digest);
  check_repaired(run, "missing_digest", Severity::warning, [&] { fs::remove(digest); });
  BOOST_TEST(read_file(digest) == text);
  check_repaired(run, "missing_digest", Severity::error,
                 [&] { fs::remove(run.path() / "gates" / "bc_best.thalia.sha256"); });
  check_repaired(run, "missing_digest", Severity::warning,
                 [&] { fs::remove(run.pool() / "pool_v0002_step00001000.thalia.sha256"); });
}

BOOST_AUTO_TEST_CASE(a_damaged_file_gets_no_digest) {
  const PlayedRun run;
  fs::remove(run.checkpoint(100).string() + ".sha256");
  damage(run.checkpoint(100));
  check_stays(run, "damaged", run.checkpoint(100));
  BOOST_TEST(!fs::exists(run.checkpoint(100).string() + ".sha256"));
}

BOOST_AUTO_TEST_CASE(a_text_that_is_no_digest_is_made_anew) {
  const PlayedRun run;
  const fs::path digest = run.checkpoint(100).string() + ".sha256";
  check_repaired(run, "bad_digest", Severity::error, [&] {
    write_file(digest, read_file(digest).substr(0, 30));
    BOOST_TEST(
        (kinds(run.verify({.phase = "phase1", .quick = true})) == Names{"bad_digest", "lock"}));
  });
}

BOOST_AUTO_TEST_CASE(a_digest_of_other_bytes_is_for_somebody_to_look_at) {
  const PlayedRun run;
  const fs::path digest = run.checkpoint(100).string() + ".sha256";
  std::string text = read_file(digest);
  text[3] = text[3] == '0' ? '1' : '0';
  write_file(digest, text);
  check_stays(run, "bad_digest", run.checkpoint(100));
  BOOST_TEST(read_file(digest) == text);
}

BOOST_AUTO_TEST_CASE(what_killed_saves_left_goes) {
  const PlayedRun run;
  for (const fs::path& folder :
       {run.checkpoints(), run.path() / "gates", run.pool(), run.path() / "phase2", run.path()})
    write_file(folder / ".x.4242-0123456789abcdef.thalia-tmp", "half");
  const StoreReport report = run.verify();
  BOOST_TEST((kinds(report) == Names(5, "temporary")));
  BOOST_TEST(report.ok());
  run.repair();
  BOOST_TEST(run.verify().findings.empty());
}

BOOST_AUTO_TEST_CASE(digests_and_metadata_without_a_file_go) {
  const PlayedRun run;
  fs::remove(run.checkpoint(100));
  fs::remove(run.pool() / "pool_v0001_step00000500.thalia");
  // The roster and the journal knew of them.
  BOOST_TEST(
      (kinds(run.verify()) == Names{"journal", "lone_digest", "lone_digest", "pool", "pool"}));
  run.repair();
  BOOST_TEST(run.verify().findings.empty());
  BOOST_TEST(!has_file(run.pool(), "pool_v0001_step00000500.thalia.meta.json"));
  BOOST_TEST(read_pool(run.run()).next_version == 3u);
}

BOOST_AUTO_TEST_CASE(a_delta_without_its_base_is_told_of) {
  RunConfig config = hydra_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 4};
  const PlayedRun run(config);
  BOOST_REQUIRE(run.run().list("phase1").at(1).is_delta());
  BOOST_TEST(run.verify().findings.empty());
  fs::rename(run.checkpoint(100), run.path() / "elsewhere");
  for (const bool quick : {false, true}) {
    const StoreReport report = run.verify({.phase = "phase1", .quick = quick});
    BOOST_TEST((kinds(report) == Names{"journal", "lone_digest", "missing_base"}));
    BOOST_TEST(!report.ok());
  }
  // Another file in its place is not the base either.
  fs::copy_file(run.path() / "phase2" / "start.thalia", run.checkpoint(100));
  const Names found = kinds(run.verify({.phase = "phase1"}));
  BOOST_TEST((std::ranges::find(found, "missing_base") != found.end()));
}

BOOST_AUTO_TEST_CASE(links_that_lead_nowhere_are_led_to_what_there_is) {
  const PlayedRun run;
  const fs::path latest = run.checkpoints() / "latest.thalia";
  check_repaired(run, "dangling_latest", Severity::warning, [&] {
    fs::remove(latest);
    fs::create_symlink("ckpt_phase1_step00000300.thalia", latest);
  });
  BOOST_TEST(fs::read_symlink(latest) == "ckpt_phase1_step00000200.thalia");
  check_repaired(run, "dangling_latest", Severity::warning, [&] { fs::remove(latest); });

  const fs::path best = run.checkpoints() / "best.thalia";
  check_repaired(run, "dangling_best", Severity::warning, [&] { fs::remove(best); });
  BOOST_TEST(fs::read_symlink(best) == "ckpt_phase1_step00000200.thalia");
  check_repaired(run, "dangling_best", Severity::warning,
                 [&] { write_file(run.checkpoints() / "best.meta.json", "{"); });
  BOOST_TEST(run.run().best("phase1")->step == 200u);
}

BOOST_AUTO_TEST_CASE(where_the_best_is_gone_the_best_of_the_others_is_it) {
  const PlayedRun run;
  fs::remove(run.checkpoint(200));
  BOOST_TEST((kinds(run.verify({.phase = "phase1"})) ==
              Names{"dangling_best", "dangling_latest", "journal", "lone_digest"}));
  run.repair();
  BOOST_TEST(run.verify({.phase = "phase1"}).findings.empty());
  BOOST_TEST(run.run().best("phase1")->step == 100u);
  BOOST_TEST(run.run().latest("phase1")->step == 100u);
}

BOOST_AUTO_TEST_CASE(what_was_left_behind_is_told_of) {
  const PlayedRun run;
  const fs::path latest = run.checkpoints() / "latest.thalia";
  fs::remove(latest);
  fs::create_symlink("ckpt_phase1_step00000100.thalia", latest);
  BOOST_TEST((kinds(run.verify()) == Names{"left_behind"}));
}

BOOST_AUTO_TEST_CASE(gates_that_are_gone_or_tell_of_others_are_told_of) {
  const PlayedRun run;
  {
    // One that is no anchor: of these the roster tells, too.
    RunWriter writer = run.writer();
    writer.promote("phase1", {.gate = "kept"});
  }
  const fs::path gates = run.path() / "gates";
  fs::remove(gates / "kept.meta.json");
  check_stays(run, "gate", gates / "kept.meta.json");
  fs::copy_file(gates / "distill_best.meta.json", gates / "kept.meta.json");
  check_stays(run, "gate", gates / "kept.meta.json");
  fs::remove(gates / "kept.meta.json");
  fs::remove(gates / "kept.thalia");
  BOOST_TEST(!run.verify().ok());
  check_stays(run, "gate", gates / "kept.thalia.sha256");
}

BOOST_AUTO_TEST_CASE(texts_of_the_pool_are_written_anew) {
  const PlayedRun run;
  check_repaired(run, "pool", Severity::warning,
                 [&] { write_file(run.pool() / "VERSION", "1\n"); });
  BOOST_TEST(read_file(run.pool() / "VERSION") == "2\n");
  check_repaired(run, "pool", Severity::warning, [&] { fs::remove(run.pool() / "roster.json"); });
  fs::remove(run.pool() / "pool_v0001_step00000500.thalia.meta.json");
  BOOST_TEST((kinds(run.verify()) == Names{"pool", "pool"}));  // the roster knew its rating
  run.repair();
  BOOST_TEST(run.verify().findings.empty());
  const fs::path meta = run.pool() / "pool_v0002_step00001000.thalia.meta.json";
  write_file(meta, "{\"mu\": 3");
  const StoreReport torn = run.repair();
  BOOST_TEST(torn.findings.at(0).path == meta);
  BOOST_TEST(!torn.findings.at(0).can_be_repaired);
  BOOST_TEST(read_file(meta) == "{\"mu\": 3");
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_the_journal_does_not_know_gets_a_line) {
  const PlayedRun run;
  fs::remove(run.checkpoints() / "journal.jsonl");
  BOOST_TEST((kinds(run.verify()) == Names{"journal", "journal"}));
  run.repair();
  BOOST_TEST(run.verify().findings.empty());
}

BOOST_AUTO_TEST_CASE(a_start_that_is_gone_is_told_of) {
  const PlayedRun run;
  fs::remove(run.path() / "phase2" / "start.thalia");
  check_stays(run, "damaged", run.path() / "phase2" / "start.thalia");
}

BOOST_AUTO_TEST_CASE(who_holds_the_lock_is_told) {
  const PlayedRun run;
  RunWriter writer = run.writer();
  const StoreReport report = run.verify();
  BOOST_TEST((kinds(report) == Names{"lock"}));
  BOOST_TEST(report.ok());
  BOOST_TEST(report.findings.at(0).message.find("process") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_that_stand_for_links_are_told_of) {
  const PlayedRun run;
  write_file(run.checkpoints() / "latest.txt", "ckpt_phase1_step00000200.thalia\n");
  BOOST_TEST((kinds(run.verify()) == Names{"file_system"}));
}

BOOST_AUTO_TEST_CASE(files_of_other_kinds_are_held_against_their_digests) {
  RunConfig config = hydra_config();
  config.extension = "pt";
  config.required_keys.clear();
  const HydraRun run(config);
  {
    RunWriter writer = run.writer();
    writer.save_bytes("phase1", 100, bytes_of("weights"), {.metric = 1});
    writer.promote("phase1");
  }
  BOOST_TEST(verify_run(run.run()).findings.empty());
  const fs::path path = run.path() / "phase1" / "checkpoints" / "ckpt_phase1_step00000100.pt";
  write_file(path, "weighty");
  BOOST_TEST((kinds(verify_run(run.run())) == Names{"damaged"}));
  fs::remove(path.string() + ".sha256");
  const StoreReport report = verify_run(run.run());
  BOOST_TEST((kinds(report) == Names{"missing_digest"}));
  BOOST_TEST(!report.findings.at(0).can_be_repaired);
}

BOOST_AUTO_TEST_CASE(a_run_that_cannot_be_read_is_an_error) {
  const HydraRun run;
  const Run open = run.run();
  fs::remove_all(run.path());
  expect<IoError>([&] { verify_run(open); }, ErrorCode::io);
}

BOOST_AUTO_TEST_CASE(a_check_that_is_cancelled_ends) {
  const PlayedRun run;
  std::stop_source stop;
  stop.request_stop();
  StoreCheckOptions options;
  options.work.cancel = stop.get_token();
  expect<CancelledError>([&] { run.verify(options); }, ErrorCode::cancelled);
}

BOOST_AUTO_TEST_SUITE_END()
