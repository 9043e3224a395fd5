#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "boost_test.h"
#include "store/runs.h"
#include "support/errors.h"
#include "support/fault.h"
#include "thalia/state/delta.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;
using FileNames = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(store_save)

namespace {

std::string link_of(const std::filesystem::path& path) {
  return std::filesystem::read_symlink(path).string();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_save_leaves_file_digest_journal_and_links) {
  const TemporaryRun run;
  RunWriter writer(run.path());  // with its waits for the disk
  const StoredCheckpoint stored = save_step(writer, 7, {.metric = 0.5});
  BOOST_TEST(
      list_folder(run.phase()) ==
          (FileNames{"best.meta.json", "best.thalia", "ckpt_train_step00000007.thalia",
                     "ckpt_train_step00000007.thalia.sha256", "journal.jsonl", "latest.thalia"}),
      per_element());
  BOOST_TEST(stored.path == run.phase() / "ckpt_train_step00000007.thalia");
  BOOST_TEST(stored.is_best);
  BOOST_TEST(stored.entry.metric.value() == 0.5);
  BOOST_TEST(stored.sync_seconds > 0);
  BOOST_TEST(link_of(run.phase() / "latest.thalia") == "ckpt_train_step00000007.thalia");
  BOOST_TEST(link_of(run.phase() / "best.thalia") == "ckpt_train_step00000007.thalia");
  const std::string check = "cd '" + run.phase().string() + "' && sha256sum --quiet -c *.sha256";
  BOOST_TEST(std::system(check.c_str()) == 0);
}

BOOST_AUTO_TEST_CASE(a_step_is_saved_once_unless_it_is_replaced) {
  for (const RunConfig& config : {small_config(), bytes_config()}) {
    const TemporaryRun run(config);
    RunWriter writer = run.writer();
    save_step(writer, 1, {.metric = 2.0});
    save_step(writer, 2, {.metric = 1.0});
    BOOST_CHECK_EXCEPTION(save_step(writer, 2), UsageError, has_code(ErrorCode::exists));
    BOOST_TEST(run.run().list("train")[1].metric.value() == 1.0);
    // The best was replaced by a worse one: the other is the best again.
    const StoredCheckpoint again = save_step(writer, 2, {.metric = 3.0, .replace = true});
    BOOST_TEST(!again.is_best);
    BOOST_TEST(run.run().best("train")->step == 1);
    BOOST_TEST(run.run().load_bytes("train").entry.metric.value() == 3.0);
  }
}

BOOST_AUTO_TEST_CASE(the_best_is_strictly_better_and_a_number) {
  RunConfig config = bytes_config();
  config.phases[0].metric = Metric{"rating", Direction::max};
  const TemporaryRun run(config);
  const auto best_after = [&](std::uint64_t step, std::optional<double> metric) {
    RunWriter writer = run.writer();  // each time anew: what is best survives a restart
    save_step(writer, step, {.metric = metric});
    const auto best = run.run().best("train");
    return best ? best->step : 0;
  };
  BOOST_TEST(best_after(1, std::nullopt) == 0);
  BOOST_TEST(best_after(2, std::nan("")) == 0);
  BOOST_TEST(best_after(3, -5.0) == 3);
  BOOST_TEST(best_after(4, -5.0) == 3);
  BOOST_TEST(best_after(5, -std::numeric_limits<double>::infinity()) == 3);
  BOOST_TEST(best_after(6, std::numeric_limits<double>::infinity()) == 3);
  BOOST_TEST(best_after(7, -4.5) == 7);
  {
    RunWriter writer = run.writer();
    writer.reset_best("train");
  }
  BOOST_TEST(!run.run().best("train"));
  BOOST_TEST(best_after(8, -100.0) == 8);
}

BOOST_AUTO_TEST_CASE(steps_are_told_in_their_order_and_stopping_at_one_leaves_all_or_nothing) {
  for (const RunConfig& config : {small_config(), bytes_config()}) {
    const TemporaryRun run(config);
    FileNames told;
    {
      RunWriter writer =
          run.writer({.on_step = [&](SaveStep step) { told.emplace_back(save_step_name(step)); }});
      save_step(writer, 1, {.metric = 1.0});
    }
    // A .thalia file has its name and its digest where `write` ends.
    FileNames all{"write", "sync_folder", "journal", "latest", "best", "retain"};
    if (!config.is_thalia()) {
      all.insert(all.begin(), {"serialize", "digest"});
      all.insert(all.begin() + 3, {"sync", "rename", "sidecar"});
    }
    BOOST_TEST(told == all, per_element());
    for (std::size_t stop = 0; stop < told.size(); ++stop) {
      const std::uint64_t step = 10 + stop;
      {
        std::size_t seen = 0;
        RunWriter writer = run.writer({.on_step = [&](SaveStep) {
          if (seen++ == stop) throw std::runtime_error("stopped");
        }});
        BOOST_CHECK_THROW(save_step(writer, step, {.metric = 1.0}), std::runtime_error);
      }
      // Whole or not there, and the next save works.
      RunWriter writer = run.writer();
      const Run now = run.run();
      const LoadedBytes loaded = now.load_bytes("train");
      const bool is_there = steps_of(now.list("train")).back() == step;
      const auto names = list_folder(run.phase());
      for (const std::string& name : names)
        BOOST_TEST(name.find("thalia-tmp") == std::string::npos, name);
      if (is_there) BOOST_TEST(loaded.entry.step == step);
      save_step(writer, step + 100, {.metric = 1.0});
      BOOST_TEST(run.run().load_bytes("train").entry.step == step + 100);
      std::filesystem::remove(run.phase() / now.file_name("train", step + 100));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stream_is_the_same_as_bytes_and_its_error_leaves_nothing) {
  const TemporaryRun run(bytes_config());
  RunWriter writer = run.writer();
  writer.save_stream("train", 1, [](const ByteSink& sink) {
    for (const char* const piece : {"some", "", " bytes"}) sink(bytes_of(piece));
  });
  BOOST_TEST(text_of(run.run().load_bytes("train").bytes.bytes) == "some bytes");
  const FileNames before = list_folder(run.phase());
  BOOST_CHECK_THROW(writer.save_stream("train", 2,
                                       [](const ByteSink& sink) {
                                         sink(bytes_of("half"));
                                         throw std::runtime_error("no more");
                                       }),
                    std::runtime_error);
  BOOST_TEST(list_folder(run.phase()) == before, per_element());
}

BOOST_AUTO_TEST_CASE(a_file_is_copied_and_a_delta_saved_as_its_state) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  const TemporaryFolder files;
  save(files / "full.thalia", state_of_step(1));
  save(files / "next.thalia", state_of_step(2));
  write_delta(state_source(ChainReader::open(files / "next.thalia")),
              ChainReader::open(files / "full.thalia"), files / "delta.thalia");
  writer.save_file("train", 1, files / "full.thalia");
  writer.save_file("train", 2, files / "delta.thalia");
  BOOST_TEST((read_file(run.phase() / "ckpt_train_step00000001.thalia") ==
              read_file(files / "full.thalia")));
  std::filesystem::remove(files / "full.thalia");
  const LoadedCheckpoint loaded = run.run().load("train");
  BOOST_TEST(loaded.chain.depth() == 0);
  BOOST_TEST(text_of(loaded.chain.read(loaded.chain.reader().tensor("b")).bytes()) ==
             text_of(state_of_step(2).regions[0].tensors[1].payload));
  // What is damaged does not get in.
  damage(files / "next.thalia");
  BOOST_CHECK_THROW(writer.save_file("train", 3, files / "next.thalia"), Error);
  write_file(files / "other", "no checkpoint");
  BOOST_CHECK_THROW(writer.save_file("train", 3, files / "other"), FormatError);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2}), per_element());
}

BOOST_AUTO_TEST_CASE(required_keys_are_asked_for_before_anything_is_written) {
  RunConfig config = small_config();
  config.required_keys = {"model", "global_step"};
  config.phases[0].required_keys = {"teacher"};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  BOOST_CHECK_EXCEPTION(save_step(writer, 1), UsageError,
                        says(ErrorCode::not_found, "global_step, teacher"));
  BOOST_TEST(run.run().list("train").empty());
  const Sample sample = state_of_step(1);
  Writer file = writer.new_checkpoint("train", 1, steady_options());
  declare(file, sample);
  file.set_metadata(R"({"global_step":1,"teacher":null})");
  writer.commit(std::move(file));
  BrainState brain;
  brain.metadata["global_step"] = 2;
  brain.state["teacher"] = true;
  BOOST_CHECK_EXCEPTION(writer.save("train", 2, brain), UsageError,
                        says(ErrorCode::not_found, "keys: model"));
  brain.regions.add("model");
  writer.save("train", 2, brain);
  BOOST_TEST(run.run().list("train").size() == 2);
}

BOOST_AUTO_TEST_CASE(of_bytes_the_caller_says_which_keys_the_record_has) {
  RunConfig config = bytes_config();
  config.required_keys = {"model", "global_step"};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  const auto lacks = [](const char* keys) { return says(ErrorCode::not_found, keys); };
  BOOST_CHECK_EXCEPTION(writer.save_bytes("train", 1, bytes_of("x")), UsageError,
                        lacks("keys: model, global_step"));
  BOOST_CHECK_EXCEPTION(
      writer.save_stream("train", 1,
                         [](const ByteSink&) { BOOST_FAIL("written before it was checked"); },
                         {.keys = {"model"}}),
      UsageError, lacks("keys: global_step"));
  const TemporaryFolder files;
  write_file(files / "x.pt", "no format that is known");
  BOOST_CHECK_EXCEPTION(writer.save_file("train", 1, files / "x.pt"), UsageError,
                        lacks("keys: model, global_step"));
  // A file of a format that can be read describes its own.
  save(files / "state.thalia", state_of_step(1));
  BOOST_CHECK_EXCEPTION(writer.save_file("train", 1, files / "state.thalia"), UsageError,
                        lacks("keys: global_step"));
  BOOST_TEST(run.run().list("train").empty());
  writer.save_bytes("train", 1, bytes_of("x"), {.keys = {"model.w", "global_step"}});
  writer.save_file("train", 2, files / "state.thalia", {.keys = {"global_step"}});
  BOOST_TEST(run.run().list("train").size() == 2u);
}

// In what torch saved, scalars and texts count as tensors do.
BOOST_AUTO_TEST_CASE(a_file_of_torch_tells_of_its_keys) {
  RunConfig config = bytes_config();
  config.required_keys = {"a", "n", "b"};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  const std::filesystem::path folder =
      std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/pt";
  writer.save_file("train", 1, folder / "protocol5.pt");
  BOOST_CHECK_EXCEPTION(writer.save_file("train", 2, folder / "shared.pt"), UsageError,
                        says(ErrorCode::not_found, "required keys"));
}

BOOST_AUTO_TEST_CASE(nothing_is_cast) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  Sample sample;
  sample.regions.push_back(
      {.spec = {.name = "model"},
       .tensors = {dense_tensor("w", DType::bf16, {8, 8}),
                   dense_tensor("exp_avg", DType::f32, {8, 8}, Role::optimizer, 2)}});
  Writer file = writer.new_checkpoint("train", 1, steady_options());
  declare(file, sample);
  writer.commit(std::move(file));
  const ChainReader chain = run.run().load("train").chain;
  for (const SampleTensor& tensor : sample.regions[0].tensors) {
    const TensorView view = chain.reader().tensor(tensor.spec.name);
    BOOST_TEST((view.dtype() == tensor.spec.dtype));
    BOOST_TEST(text_of(chain.read(view).bytes()) == text_of(tensor.payload));
  }
}

BOOST_AUTO_TEST_CASE(a_second_writer_is_told_who_holds_the_run) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  BOOST_CHECK_EXCEPTION(run.writer(), IoError, [&](const IoError& error) {
    const std::string text = error.what();
    return error.errno_value() == EWOULDBLOCK &&
           text.find("process " + std::to_string(::getpid())) != std::string::npos &&
           text.find("since 20") != std::string::npos;
  });
  // Readers need no lock.
  save_step(writer, 1);
  BOOST_TEST(run.run().load("train").entry.step == 1);
}

BOOST_AUTO_TEST_CASE(a_writer_may_bring_a_configuration) {
  const TemporaryRun run;
  const std::string before = read_file(run.path() / "run.toml");
  RunConfig config = small_config();
  { const RunWriter same = run.writer({.config = config}); }
  BOOST_TEST(read_file(run.path() / "run.toml") == before);
  config.phases[0].retention.keep_last = 1;
  config.phases.push_back({.name = "tuning"});
  {
    RunWriter writer = run.writer({.config = config});
    save_step(writer, 1);
    save_step(writer, 2);
    BOOST_TEST(run.run().list("train").size() == 1u);
    BOOST_TEST(run.run().list("tuning").empty());
  }
  BOOST_TEST(run.run().config().phases.size() == 2u);
  BOOST_CHECK_EXCEPTION(run.writer({.config = small_config()}), UsageError,
                        says(ErrorCode::bad_argument, "tuning"));
  BOOST_CHECK_EXCEPTION(run.writer({.config = bytes_config()}), UsageError,
                        says(ErrorCode::bad_argument, "extension"));
}

BOOST_AUTO_TEST_CASE(processes_that_save_into_one_run_take_turns) {
  RunConfig config = bytes_config();
  config.phases[0].retention.keep_last = std::nullopt;
  const TemporaryRun run(config);
  std::vector<pid_t> children;
  for (std::uint64_t child = 0; child < 3; ++child) {
    const pid_t process = ::fork();
    if (process == 0) {
      try {
        for (std::uint64_t step = 0; step < 5; ++step) {
          RunWriter writer = run.writer({.wait = true});
          save_step(writer, child * 100 + step, {.metric = static_cast<double>(step)});
        }
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    children.push_back(process);
  }
  for (const pid_t process : children) {
    int status = 0;
    BOOST_TEST(::waitpid(process, &status, 0) == process);
    BOOST_TEST(status == 0);
  }
  const std::vector<CheckpointEntry> entries = run.run().list("train");
  BOOST_TEST(entries.size() == 15);
  for (const CheckpointEntry& entry : entries) {
    BOOST_TEST(entry.metric.has_value());
    run.run().load_bytes("train", {.step = entry.step});
  }
}

BOOST_AUTO_TEST_CASE(what_a_killed_save_left_is_swept_and_its_checkpoint_is_the_latest) {
  const TemporaryRun run(bytes_config());
  {
    RunWriter writer = run.writer();
    save_step(writer, 1, {.metric = 1.0});
    save_step(writer, 2, {.metric = 2.0});
  }
  // Killed before the journal: file and digest are there, the link is not.
  const std::string journal = read_file(run.phase() / "journal.jsonl");
  write_file(run.phase() / "journal.jsonl", journal.substr(0, journal.find('\n') + 1));
  std::filesystem::remove(run.phase() / "latest.pt");
  std::filesystem::create_symlink("ckpt_train_step00000001.pt", run.phase() / "latest.pt");
  write_file(run.phase() / "ckpt_train_step00000002.pt", "checkpoint 2");  // younger than the link
  write_file(run.phase() / ".ckpt_train_step00000003.pt.99-0123456789abcdef.thalia-tmp", "half");
  write_file(run.phase() / "ckpt_train_step00000003.pt.sha256", "of nothing");
  { RunWriter writer = run.writer(); }
  BOOST_TEST(link_of(run.phase() / "latest.pt") == "ckpt_train_step00000002.pt");
  for (const std::string& name : list_folder(run.phase()))
    BOOST_TEST(name.find("step00000003") == std::string::npos, name);
}

BOOST_AUTO_TEST_CASE(works_without_links_and_locks_and_says_so) {
  const TemporaryRun run(bytes_config());
  const Outcome outcome = run_with_faults({{SYS_symlinkat, EPERM}, {SYS_flock, ENOLCK}}, [&] {
    FileNames warnings;
    RunWriter writer = run.writer(
        {.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); }});
    save_step(writer, 1, {.metric = 2.0});
    save_step(writer, 2, {.metric = 1.0});
    std::string all;
    for (const std::string& sentence : warnings) all += sentence;
    if (all.find("no locks") == std::string::npos || all.find("latest.txt") == std::string::npos)
      throw std::runtime_error("said " + all);
  });
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
  BOOST_TEST(read_file(run.phase() / "latest.txt") == "ckpt_train_step00000002.pt\n");
  BOOST_TEST(run.run().load_bytes("train").entry.step == 2);
  BOOST_TEST(run.run().best("train")->step == 2);
  // On a file system with links, they take the text's place.
  RunWriter writer = run.writer();
  save_step(writer, 3);
  BOOST_TEST(!std::filesystem::exists(run.phase() / "latest.txt"));
  BOOST_TEST(link_of(run.phase() / "latest.pt") == "ckpt_train_step00000003.pt");
}

BOOST_AUTO_TEST_CASE(a_run_that_was_led_back_stays_there) {
  RunConfig config = bytes_config();
  config.phases[0].retention.keep_last = 3;
  const TemporaryRun run(config);
  {
    RunWriter writer = run.writer();
    for (std::uint64_t step = 1; step <= 3; ++step) save_step(writer, step * 10);
  }
  std::filesystem::remove(run.phase() / "latest.pt");
  std::filesystem::create_symlink("ckpt_train_step00000010.pt", run.phase() / "latest.pt");
  for (int restart = 0; restart < 2; ++restart) {
    RunWriter writer = run.writer();
    writer.prune("train", {.policy = RetentionPolicy{.keep_last = 2}});
    BOOST_TEST(run.run().load_bytes("train").entry.step == 10);
  }
  // What was left behind went first, and goes before what is saved from now on.
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{10, 30}), per_element());
  RunWriter writer = run.writer();
  for (const std::uint64_t step : {11, 12}) save_step(writer, step);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{10, 11, 12}), per_element());
}

BOOST_AUTO_TEST_CASE(a_run_that_was_moved_goes_on) {
  RunConfig config = small_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 10};
  const TemporaryRun run(config);
  const TemporaryFolder files, elsewhere;
  const auto save_into = [&](const std::filesystem::path& path, std::uint64_t step) {
    RunWriter writer(path, {.durability = Durability::none});
    save(files / "f.thalia", state_of_step(step));
    writer.save_file("train", step, files / "f.thalia");
  };
  save_into(run.path(), 1);
  save_into(run.path(), 2);
  std::filesystem::rename(run.path(), elsewhere / "moved");
  save_into(elsewhere / "moved", 3);
  const LoadedCheckpoint loaded = Run::open(elsewhere / "moved").load("train");
  BOOST_TEST(loaded.entry.step == 3);
  BOOST_TEST(loaded.chain.depth() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
