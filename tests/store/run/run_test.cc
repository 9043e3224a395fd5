#include "thalia/store/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include "boost_test.h"
#include "store/run/journal.h"
#include "store/runs.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(run)

BOOST_AUTO_TEST_CASE(a_new_run_has_the_folders_of_its_configuration) {
  const TemporaryFolder folder;
  create_run(folder / "runs/20260115_143022_a1b2c3d4", hydra_config());
  const auto path = folder / "runs/20260115_143022_a1b2c3d4";
  BOOST_TEST(list_folder(path) == (std::vector<std::string>{"eval", "gates", "grp", "phase1",
                                                            "phase2", "phase3", "run.toml"}),
             per_element());
  BOOST_TEST(
      list_folder(path / "phase3") == (std::vector<std::string>{"checkpoints", "opponent_pool"}),
      per_element());
  BOOST_CHECK_EXCEPTION(create_run(path, hydra_config()), UsageError, has_code(ErrorCode::exists));
  BOOST_CHECK_EXCEPTION(create_run(path, hydra_config(), ConfigFormat::json), UsageError,
                        has_code(ErrorCode::exists));
  create_run(folder / "runs/20270115_143022_a1b2c3d4", hydra_config(), ConfigFormat::json);
  std::filesystem::create_directory(folder / "runs/notes");
  const std::vector<RunSummary> found = find_runs(folder / "runs");
  BOOST_TEST(found.size() == 2);
  BOOST_TEST(found.front().id == "20260115_143022_a1b2c3d4");
  BOOST_TEST(find_runs(folder / "nowhere").empty());
}

BOOST_AUTO_TEST_CASE(a_folder_without_a_configuration_is_no_run) {
  const TemporaryFolder folder;
  BOOST_CHECK_EXCEPTION(Run::open(folder.path()), UsageError,
                        says(ErrorCode::not_found, "run.toml", "store init"));
  const TemporaryRun run;
  write_file(run.path() / "run.json", "{}");
  BOOST_CHECK_EXCEPTION(run.run(), UsageError, has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(lists_what_is_there_and_nothing_else) {
  const TemporaryRun run;
  BOOST_TEST(run.run().list("train").empty());
  BOOST_TEST(!run.run().latest("train"));
  BOOST_TEST(!run.run().current_phase());
  {
    RunWriter writer = run.writer();
    save_step(writer, 20, {.metric = 0.5});
    save_step(writer, 10, {.metric = 0.25});
  }
  write_file(run.phase() / "notes.txt", "x");
  write_file(run.phase() / "ckpt_train_step00000030.thalia.sha256", "x");
  write_file(run.phase() / ".ckpt_train_step00000030.thalia.7-0123456789abcdef.thalia-tmp", "x");
  std::filesystem::create_directory(run.phase() / "ckpt_train_step00000040.thalia");
  const std::vector<CheckpointEntry> entries = run.run().list("train");
  BOOST_TEST(steps_of(entries) == (Steps{10, 20}), per_element());
  BOOST_TEST(entries[0].metric.value() == 0.25);
  BOOST_TEST(entries[0].has_digest);
  BOOST_TEST(entries[0].bytes == std::filesystem::file_size(run.run().path_of(entries[0])));
  BOOST_TEST(entries[0].protected_by == (std::vector<std::string>{"latest", "best"}),
             per_element());
  BOOST_TEST(entries[1].protected_by.empty());
  BOOST_TEST(run.run().latest("train")->step == 10);
  BOOST_TEST(run.run().current_phase().value() == "train");
}

BOOST_AUTO_TEST_CASE(a_torn_or_missing_journal_costs_the_metric_alone) {
  const TemporaryRun run;
  {
    RunWriter writer = run.writer();
    save_step(writer, 1, {.metric = 1.5});
    save_step(writer, 2, {.metric = std::numeric_limits<double>::quiet_NaN()});
    save_step(writer, 3, {.metric = 0.5});
  }
  const std::string journal = read_file(run.phase() / "journal.jsonl");
  BOOST_TEST(std::isnan(run.run().list("train")[1].metric.value()));
  write_file(run.phase() / "journal.jsonl", journal.substr(0, journal.size() - 20));
  const std::vector<CheckpointEntry> torn = run.run().list("train");
  BOOST_TEST(steps_of(torn) == (Steps{1, 2, 3}), per_element());
  BOOST_TEST(torn[0].metric.value() == 1.5);
  BOOST_TEST(!torn[2].metric);
  // The next line does not continue the torn one.
  {
    RunWriter writer = run.writer();
    save_step(writer, 4, {.metric = 0.25});
  }
  BOOST_TEST(run.run().list("train")[3].metric.value() == 0.25);
  std::filesystem::remove(run.phase() / "journal.jsonl");
  BOOST_TEST(run.run().list("train").size() == 4);
}

BOOST_AUTO_TEST_CASE(a_line_of_another_file_of_the_name_does_not_count) {
  const TemporaryRun run(bytes_config());
  {
    RunWriter writer = run.writer();
    save_step(writer, 1, {.metric = 1.5});
  }
  write_file(run.phase() / "ckpt_train_step00000001.pt", "brought from elsewhere");
  BOOST_TEST(!run.run().list("train")[0].metric);
}

BOOST_AUTO_TEST_CASE(any_bytes_make_a_journal) {
  const auto lines = [](std::string_view text) { return store::parse_journal(text).saved.size(); };
  BOOST_TEST(lines("") == 0);
  BOOST_TEST(lines("\n\n{}\n[1]\nnull\n{\"file\":7}\n{\"file\"") == 0);
  BOOST_TEST(lines("{\"file\":\"a\",\"step\":-1,\"depth\":1e9}\n") == 1);
  BOOST_TEST(lines("{\"file\":\"a\"}\n{\"removed\":\"a\",\"reason\":\"r\",\"at\":1}\n") == 0);
}

BOOST_AUTO_TEST_CASE(a_link_that_leads_nowhere_is_passed_over) {
  const TemporaryRun run;
  {
    RunWriter writer = run.writer();
    save_step(writer, 1);
    save_step(writer, 2);
  }
  std::filesystem::remove(run.phase() / "ckpt_train_step00000002.thalia");
  BOOST_TEST(run.run().latest("train")->step == 1);
  std::filesystem::remove(run.phase() / "latest.thalia");
  BOOST_TEST(run.run().latest("train")->step == 1);
  std::filesystem::create_symlink("../../../../etc/passwd", run.phase() / "latest.thalia");
  BOOST_TEST(run.run().latest("train")->step == 1);
}

BOOST_AUTO_TEST_SUITE_END()
