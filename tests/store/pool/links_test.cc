// A run that a stranger has made: whichever of its names is a link that leads out of it, nothing
// outside is written, removed or taken for a part of the run.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "store/pool/runs.h"
#include "thalia/store/repair.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_links)

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// A run with all that one may have: two gates, two phases that began with one, a pool.
void play(const fs::path& path) {
  RunWriter writing(path, quick_writing());
  HydraRun::play_phase1(writing);
  transition(writing, to_distillation());
  HydraRun::play_phase2(writing);
  transition(writing, to_league());
  Pool pool(writing);
  HydraRun::save(writing, 500);
  pool.add("phase3", 500, {.mu = 30, .sigma = 4});
}

template <typename Call>
void attempt(const Call& call) {
  try {
    call();
  } catch (const Error&) {
    // It may be refused. What it did until then is looked at.
  }
}

// All that changes a run, and all that reads one. What one of them refuses keeps no other from
// being tried.
void do_everything(const fs::path& path, const fs::path& elsewhere) {
  attempt([&] {
    RunWriter writer(path, quick_writing());
    const auto record = record_of({.seed = 7, .step = 400});
    attempt([&] { writer.save("phase1", 400, record, {.metric = 0.1}); });
    attempt([&] { writer.save("phase1", 200, record, {.metric = 0.05, .replace = true}); });
    attempt([&] { writer.promote("phase1", {.force = true}); });
    attempt([&] { writer.prune("phase1", {.policy = RetentionPolicy{.keep_last = 1}}); });
    attempt([&] { transition(writer, to_distillation(), {.force = true}); });
    attempt([&] {
      Pool pool(writer);
      attempt([&] { pool.rate(1, {.mu = 31, .sigma = 3}, 5, 0.5); });
      attempt([&] { HydraRun::save(writer, 600); });
      attempt([&] { pool.add("phase3", 600, {.mu = 32, .sigma = 3}); });
    });
    attempt([&] { repair_run(writer); });
    attempt([&] { writer.reset_best("phase1"); });
  });
  attempt([&] { verify_run(Run::open(path)); });
  for (const char* const phase : {"phase1", "phase2", "phase3"}) {
    attempt([&] { Run::open(path).load(phase); });
    attempt([&] {
      restore(Run::open(path), phase, elsewhere, {.output = {.durability = Durability::none}});
    });
  }
  attempt([&] { Run::open(path).load_gate("bc_best"); });
  attempt([&] { read_pool(Run::open(path)); });
  attempt([&] { create_run(path, hydra_config()); });
}

// Every name below a folder, links as what they say.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    std::string& text = found[entry.path().lexically_relative(folder).string()];
    if (entry.is_symlink()) {
      text = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      text = read_file(entry.path()) +
             std::to_string(entry.last_write_time().time_since_epoch().count());
    }
  }
  return found;
}

Names names_in(const fs::path& folder) {
  Names names;
  for (const auto& [name, text] : content_of(folder)) names.insert(name);
  return names;
}

// A run with one of its names led out of it.
struct LedOut {
  LedOut(const fs::path& played, const std::string& name, bool is_dangling) {
    fs::copy(played, place / "run", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::create_directories(place / "outside/deep");
    write_file(place / "outside/precious", "precious");
    // What a stray file of a killed process would be called.
    write_file(place / "outside/deep/.start.thalia.7-0123456789abcdef.thalia-tmp", "precious");
    const fs::path path = place / "run" / name, victim = place / "outside/victim";
    if (is_dangling) {
      fs::remove_all(path);
    } else if (fs::exists(path)) {
      // As it was in the run, so that what would be taken for a part of it is one.
      fs::copy(path, victim, fs::copy_options::recursive);
      if (fs::is_directory(victim))
        write_file(victim / ".start.thalia.7-0123456789abcdef.thalia-tmp", "precious");
      fs::remove_all(path);
    } else {
      write_file(victim, "precious");
    }
    fs::create_symlink(victim, path);
    before = content_of(place / "outside");
    do_everything(place / "run", place / "restored.thalia");
    BOOST_TEST_CONTEXT(name << (is_dangling ? ", dangling" : "")) {
      BOOST_TEST((content_of(place / "outside") == before));
    }
  }
  TemporaryFolder place;
  std::map<std::string, std::string> before;
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_outside_of_a_run_changes_whichever_name_is_a_link) {
  const HydraRun played;
  play(played.path());
  Names names = names_in(played.path());
  const TemporaryFolder later;
  fs::copy(played.path(), later / "run",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  do_everything(later / "run", later / "restored.thalia");
  // Names that are only made by what is done to it.
  names.merge(names_in(later / "run"));
  BOOST_TEST(names.size() > 40u);
  for (const std::string& name : names) {
    LedOut(played.path(), name, /*is_dangling=*/false);
    LedOut(played.path(), name, /*is_dangling=*/true);
  }
}

BOOST_AUTO_TEST_CASE(a_link_in_the_place_of_a_file_is_named_by_the_error) {
  const HydraRun run;
  std::optional<RunWriter> writer(run.writer());
  HydraRun::play_phase1(*writer);
  const fs::path checkpoints = run.path() / "phase1/checkpoints";
  const auto refused = [](const fs::path& path) {
    return [path](const UsageError& error) {
      return error.code() == ErrorCode::bad_argument && error.context().path == path.string() &&
             error.context().value == "a symbolic link";
    };
  };
  const fs::path next = checkpoints / "ckpt_phase1_step00000300.thalia";
  fs::create_symlink(run.path() / "none", next);
  BOOST_CHECK_EXCEPTION(writer->save("phase1", 300, record_of({.step = 300})), UsageError,
                        refused(next));
  fs::remove(next);
  writer.reset();
  fs::rename(run.path() / "phase1", run.path() / "moved");
  fs::create_symlink("moved", run.path() / "phase1");
  BOOST_CHECK_EXCEPTION(run.run().list("phase1"), UsageError, refused(run.path() / "phase1"));
  BOOST_CHECK_EXCEPTION(run.writer(), UsageError, refused(run.path() / "phase1"));
}

// The folder itself is the caller's to name.
BOOST_AUTO_TEST_CASE(links_that_lead_to_a_run_are_followed) {
  const HydraRun run;
  const TemporaryFolder place;
  fs::create_symlink(run.path(), place / "link");
  fs::create_symlink(place.path(), place / "again");
  RunWriter writer(place / "again/./link", quick_writing());
  HydraRun::play_phase1(writer);
  BOOST_TEST(writer.run().latest("phase1")->step == 200u);
  BOOST_TEST(run.run().load("phase1").entry.step == 200u);
  BOOST_TEST(verify_run(Run::open(place / "link/")).ok());
}

BOOST_AUTO_TEST_SUITE_END()
