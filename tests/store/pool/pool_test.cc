// Versions: how they are numbered, rated and evicted, over restarts and over texts that are damaged
// or gone.
#include <algorithm>
#include <limits>
#include <thread>

#include "store/pool/runs.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_pool)

namespace {

namespace fs = std::filesystem;

RunConfig small_pool(std::uint32_t keep) {
  RunConfig config = hydra_config();
  config.pool->keep = keep;
  return config;
}

std::vector<std::uint64_t> versions_of(const PoolView& view) {
  std::vector<std::uint64_t> versions;
  for (const PoolMember& member : view.versions) versions.push_back(member.version);
  return versions;
}

using Numbers = std::vector<std::uint64_t>;

// Adds versions of steps 500, 1000, … after those that are there.
void add_versions(RunWriter& writer, std::uint64_t first, unsigned count) {
  Pool pool(writer);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t step = (first + i) * 500;
    HydraRun::save(writer, step);
    pool.add("phase3", step, {.mu = 20.0 + static_cast<double>(i), .sigma = 1});
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_version_has_its_files_and_what_was_known_of_it) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::save(writer, 120'000);
  Pool pool(writer);
  const PoolAddResult added = pool.add("phase3", 120'000, {.mu = 27.5, .sigma = 4});
  BOOST_TEST(added.member.name == "pool_v0001_step00120000.thalia");
  BOOST_TEST(added.evicted.empty());
  BOOST_TEST((list_folder(run.pool()) ==
              std::vector<std::string>{"VERSION", "pool_v0001_step00120000.thalia",
                                       "pool_v0001_step00120000.thalia.meta.json",
                                       "pool_v0001_step00120000.thalia.sha256", "roster.json"}));
  const Value meta = parse_json(read_file(run.pool() / "pool_v0001_step00120000.thalia.meta.json"));
  BOOST_TEST(meta.at("version").as_uint64() == 1u);
  BOOST_TEST(meta.at("source_global_step").as_uint64() == 120'000u);
  BOOST_TEST(meta.at("source_phase").as_string() == "phase3");
  BOOST_TEST(meta.at("mu").as_double() == 27.5);
  BOOST_TEST(meta.at("sigma").as_double() == 4.0);
  BOOST_TEST(meta.at("games_played").as_uint64() == 0u);
  BOOST_TEST(meta.at("win_rate").as_double() == 0.0);
  BOOST_TEST(meta.at("promoted_at").as_uint64() > 1'700'000'000u);
  const PoolView view = read_pool(run.run());
  BOOST_TEST(view.next_version == 2u);
  BOOST_REQUIRE(view.versions.size() == 1u);
  BOOST_TEST((view.versions[0] == added.member));
}

BOOST_AUTO_TEST_CASE(sigma_is_that_of_the_model_or_the_floor) {
  const HydraRun run;
  RunWriter writer = run.writer();
  Pool pool(writer);
  HydraRun::save(writer, 500);
  BOOST_TEST(pool.add("phase3", 500, {.mu = 30, .sigma = 1}).member.rating.sigma == 25.0 / 9.0);
  BOOST_TEST(pool.add("phase3", 500, {.mu = 30, .sigma = 6}).member.rating.sigma == 6.0);
  expect<UsageError>([&] { pool.add("phase3", 500, {.mu = 30, .sigma = -1}); },
                     ErrorCode::bad_argument);
  BOOST_TEST(pool.view().versions.size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_oldest_version_goes_first_once_the_log_has_it) {
  const HydraRun run(small_pool(3));
  RunWriter writer = run.writer();
  add_versions(writer, 1, 3);
  Pool pool(writer);
  pool.rate(1, {.mu = 31, .sigma = 2}, 40, 0.25);
  HydraRun::save(writer, 9000);
  const PoolAddResult added = pool.add("phase3", 9000, {});
  BOOST_TEST((added.evicted == std::vector<std::string>{"pool_v0001_step00000500.thalia"}));
  BOOST_TEST((versions_of(pool.view()) == Numbers{2, 3, 4}));
  for (const char* const ending : {"", ".sha256", ".meta.json"})
    BOOST_TEST(!has_file(run.pool(), std::string("pool_v0001_step00000500.thalia") + ending));
  const std::string log = read_file(run.pool() / "pool_evictions.jsonl");
  BOOST_REQUIRE(std::ranges::count(log, '\n') == 1);
  const Value line = parse_json(log);
  BOOST_TEST(line.at("version").as_uint64() == 1u);
  BOOST_TEST(line.at("source_global_step").as_uint64() == 500u);
  BOOST_TEST(line.at("source_phase").as_string() == "phase3");
  BOOST_TEST(line.at("mu").as_double() == 31.0);
  BOOST_TEST(line.at("sigma").as_double() == 2.0);
  BOOST_TEST(line.at("games_played").as_uint64() == 40u);
  BOOST_TEST(line.at("win_rate").as_double() == 0.25);
  BOOST_TEST(line.at("promoted_at").as_uint64() > 0u);
  BOOST_TEST(line.at("evicted_at").as_uint64() >= line.at("promoted_at").as_uint64());
}

BOOST_AUTO_TEST_CASE(the_log_has_every_rating_that_a_version_had) {
  const HydraRun run(small_pool(1));
  {
    RunWriter writer = run.writer();
    HydraRun::save(writer, 500);
    Pool pool(writer);
    pool.add("phase3", 500, {.mu = 30, .sigma = 4});
    pool.rate(1, {.mu = 31, .sigma = 2}, 40, 0.25);
  }
  RunWriter writer = run.writer();
  Pool pool(writer);
  const PoolMember rated = pool.rate(1, {.mu = 32, .sigma = 1.5}, 60, 0.5);
  BOOST_REQUIRE(rated.history.size() == 2u);
  BOOST_TEST(rated.history[0].rated_at == rated.promoted_at);
  BOOST_TEST((pool.view().versions.at(0) == rated));
  pool.add("phase3", 500, {});
  const Value line = parse_json(read_file(run.pool() / "pool_evictions.jsonl"));
  BOOST_TEST(line.at("mu").as_double() == 32.0);
  BOOST_TEST(line.at("games_played").as_uint64() == 60u);
  const std::vector<Value>& history = line.at("history").elements();
  BOOST_REQUIRE(history.size() == 2u);
  BOOST_TEST(history[0].at("mu").as_double() == 30.0);
  BOOST_TEST(history[0].at("sigma").as_double() == 4.0);
  BOOST_TEST(history[0].at("games_played").as_uint64() == 0u);
  BOOST_TEST(history[1].at("mu").as_double() == 31.0);
  BOOST_TEST(history[1].at("win_rate").as_double() == 0.25);
  BOOST_TEST(history[1].at("rated_at").as_uint64() >= history[0].at("rated_at").as_uint64());
  BOOST_TEST(line.at("rated_at").as_uint64() >= history[1].at("rated_at").as_uint64());
}

BOOST_AUTO_TEST_CASE(numbers_go_on_after_a_restart) {
  const HydraRun run(small_pool(2));
  for (unsigned i = 0; i < 4; ++i) {
    RunWriter writer = run.writer();
    add_versions(writer, 1 + 2 * i, 2);
  }
  BOOST_TEST((versions_of(read_pool(run.run())) == Numbers{7, 8}));
  BOOST_TEST(read_file(run.pool() / "VERSION") == "8\n");
}

BOOST_AUTO_TEST_CASE(no_number_comes_twice_where_what_counts_them_is_gone) {
  const HydraRun run(small_pool(1));
  RunWriter writer = run.writer();
  add_versions(writer, 1, 3);
  const auto next = [&] { return read_pool(run.run()).next_version; };
  BOOST_TEST(next() == 4u);
  // Each of the three tells by itself.
  fs::remove(run.pool() / "VERSION");
  BOOST_TEST(next() == 4u);
  fs::remove(run.pool() / "pool_v0003_step00001500.thalia");
  BOOST_TEST(next() == 3u);  // by the log, whose last is 2
  write_file(run.pool() / "VERSION", "3\n");
  fs::remove(run.pool() / "pool_evictions.jsonl");
  BOOST_TEST(next() == 4u);
  add_versions(writer, 4, 1);
  BOOST_TEST((versions_of(read_pool(run.run())) == Numbers{4}));
}

BOOST_AUTO_TEST_CASE(a_version_file_that_is_damaged_counts_as_none) {
  const HydraRun run;
  std::vector<std::string> warnings;
  RunWriter writer = run.writer(&warnings);
  add_versions(writer, 1, 2);
  for (const char* const text : {"", "2x", "-1", "99999999999999999999", "9007199254740992"}) {
    warnings.clear();
    write_file(run.pool() / "VERSION", text);
    BOOST_TEST(read_pool(run.run()).next_version == 3u);
    const Pool pool(writer);
    BOOST_TEST(warnings.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_log_counts_whatever_else_is_in_it) {
  const HydraRun run;
  RunWriter writer = run.writer();
  const Pool pool(writer);
  write_file(run.pool() / "pool_evictions.jsonl",
             "{\"version\":7}\nnothing\n\n{\"version\":\"80\"}\n{\"version\":9007199254740993}\n"
             "{\"version\":9,\"mu\":1,\"of\":[[1]]}\n{\"version\":1");
  BOOST_TEST(pool.view().next_version == 10u);
}

BOOST_AUTO_TEST_CASE(metadata_that_is_missing_or_torn_costs_the_rating_alone) {
  const HydraRun run;
  std::vector<std::string> warnings;
  RunWriter writer = run.writer(&warnings);
  add_versions(writer, 1, 4);
  const auto meta = [&](const char* name) {
    return run.pool() / (name + std::string(".meta.json"));
  };
  fs::remove(meta("pool_v0001_step00000500.thalia"));
  write_file(meta("pool_v0002_step00001000.thalia"), "{\"version\": 2, \"mu\": 2");
  write_file(meta("pool_v0003_step00001500.thalia"), "{\"version\": 4, \"mu\": 2}");
  write_file(meta("pool_v0004_step00002000.thalia"),
             "{\"version\": 4, \"mu\": 2, \"sigma\": 1e999}");
  const PoolView view = read_pool(run.run());
  BOOST_REQUIRE(view.versions.size() == 4u);
  for (const PoolMember& member : view.versions) {
    BOOST_TEST((member.rating == Rating{}));
    BOOST_TEST(member.phase == "phase3");
    BOOST_TEST(member.promoted_at > 1'700'000'000u);
  }
  const Pool pool(writer);
  BOOST_TEST(warnings.size() == 3u);
}

BOOST_AUTO_TEST_CASE(members_that_metadata_lacks_are_those_of_a_new_model) {
  const HydraRun run;
  RunWriter writer = run.writer();
  add_versions(writer, 1, 1);
  write_file(run.pool() / "pool_v0001_step00000500.thalia.meta.json",
             "{\"mu\": 29.5, \"games_played\": 12, \"note\": \"by hand\"}");
  const PoolMember member = read_pool(run.run()).versions.at(0);
  BOOST_TEST(member.rating.mu == 29.5);
  BOOST_TEST(member.rating.sigma == 25.0 / 3.0);
  BOOST_TEST(member.games_played == 12u);
}

BOOST_AUTO_TEST_CASE(what_games_have_shown_is_kept) {
  const HydraRun run;
  {
    RunWriter writer = run.writer();
    add_versions(writer, 1, 2);
    Pool pool(writer);
    const PoolMember rated = pool.rate(2, {.mu = 33, .sigma = 1.5}, 60, 0.75);
    BOOST_TEST(rated.rating.conservative() == 28.5);
    expect<UsageError>([&] { pool.rate(3, {}, 1, 0.5); }, ErrorCode::not_found);
    expect<UsageError>([&] { pool.rate(0, {}, 1, 0.5); }, ErrorCode::bad_argument);
    for (const double rate : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
      expect<UsageError>([&] { pool.rate(2, {}, 1, rate); }, ErrorCode::bad_argument);
  }
  const PoolMember member = read_pool(run.run()).versions.at(1);
  BOOST_TEST(member.rating.mu == 33.0);
  BOOST_TEST(member.games_played == 60u);
  BOOST_TEST(member.win_rate == 0.75);
  const Value roster = parse_json(read_file(run.pool() / "roster.json"));
  BOOST_TEST(roster.at("versions").elements().at(1).at("mu").as_double() == 33.0);
}

BOOST_AUTO_TEST_CASE(anchors_are_gates_that_nothing_evicts_or_rates) {
  const HydraRun run(small_pool(1));
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer);
  add_versions(writer, 1, 3);
  const PoolView view = read_pool(run.run());
  BOOST_TEST((versions_of(view) == Numbers{3}));
  BOOST_REQUIRE(view.anchors.size() == 2u);
  BOOST_TEST(view.anchors[0].name == "bc_best");
  BOOST_TEST(view.anchors[0].path == run.path() / "gates" / "bc_best.thalia");
  BOOST_TEST(view.anchors[0].is_anchor);
  BOOST_TEST(view.anchors[0].version == 0u);
  BOOST_TEST(view.anchors[0].step == 200u);
  BOOST_TEST(view.anchors[1].name == "distill_best");
  BOOST_TEST(view.anchors[1].phase == "phase2");
}

BOOST_AUTO_TEST_CASE(ratings_of_anchors_stand_in_the_roster) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  add_versions(writer, 1, 1);
  Value roster = parse_json(read_file(run.pool() / "roster.json"));
  Value& anchor = roster.at("anchors").elements().at(0);
  anchor["mu"] = 22.5;
  anchor["sigma"] = 0.5;
  write_file(run.pool() / "roster.json", to_json(roster));
  add_versions(writer, 2, 1);
  BOOST_TEST(read_pool(run.run()).anchors.at(0).rating.mu == 22.5);
  roster = parse_json(read_file(run.pool() / "roster.json"));
  BOOST_TEST(roster.at("anchors").elements().at(0).at("sigma").as_double() == 0.5);
  BOOST_TEST(roster.at("versions").size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_folder_is_the_truth_whatever_the_roster_says) {
  const HydraRun run;
  RunWriter writer = run.writer();
  add_versions(writer, 1, 2);
  write_file(run.pool() / "roster.json", "{\"anchors\": 7, \"versions\": []");
  BOOST_TEST((versions_of(read_pool(run.run())) == Numbers{1, 2}));
  const Pool pool(writer);
  BOOST_TEST(parse_json(read_file(run.pool() / "roster.json")).at("versions").size() == 2u);
}

BOOST_AUTO_TEST_CASE(names_that_are_no_versions_are_left_alone) {
  const HydraRun run;
  RunWriter writer = run.writer();
  add_versions(writer, 1, 1);
  for (const char* const name : {"pool_v0000_step00000500.thalia", "pool_v1_step00000500.thalia",
                                 "pool_v0002_step500.thalia", "pool_v0002_step00000500.pt",
                                 "notes.txt", "pool_v99999999999999999999_step00000500.thalia",
                                 "pool_v18446744073709551615_step00000500.thalia"})
    write_file(run.pool() / name, "?");
  fs::create_directory(run.pool() / "pool_v0005_step00000500.thalia");
  const PoolView view = read_pool(run.run());
  BOOST_TEST((versions_of(view) == Numbers{1}));
  BOOST_TEST(view.next_version == 2u);
}

BOOST_AUTO_TEST_CASE(versions_beyond_four_digits_come_in_the_order_of_their_numbers) {
  const HydraRun run;
  RunWriter writer = run.writer();
  add_versions(writer, 1, 1);
  write_file(run.pool() / "VERSION", "9998\n");
  add_versions(writer, 2, 2);
  const PoolView view = read_pool(run.run());
  BOOST_TEST((versions_of(view) == Numbers{1, 9999, 10'000}));
  BOOST_TEST(view.versions.back().name == "pool_v10000_step00001500.thalia");
}

BOOST_AUTO_TEST_CASE(bytes_of_any_kind_are_added_as_they_are) {
  RunConfig config = hydra_config();
  config.extension = "pt";
  const HydraRun run(config);
  RunWriter writer = run.writer();
  Pool pool(writer);
  const PoolMember member = pool.add_bytes("phase3", 500, {}, bytes_of("weights")).member;
  BOOST_TEST(member.name == "pool_v0001_step00000500.pt");
  BOOST_TEST(member.bytes == 7u);
  BOOST_TEST(read_file(member.path) == "weights");
  BOOST_TEST(read_file(member.path.string() + ".sha256").ends_with("  " + member.name + "\n"));
  expect<UsageError>([&] { pool.add("phase3", 500, {}); }, ErrorCode::wrong_state);
  expect<UsageError>([&] { pool.add_bytes("phase9", 500, {}, {}); }, ErrorCode::not_found);
  expect<UsageError>([&] { pool.add_bytes("phase3", kMaxStep + 1, {}, {}); },
                     ErrorCode::bad_argument);
  BOOST_TEST(pool.view().versions.size() == 1u);
}

BOOST_AUTO_TEST_CASE(versions_of_several_threads_have_numbers_of_their_own) {
  const HydraRun run;
  RunWriter writer = run.writer();
  Pool pool(writer);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 3; ++i)
          pool.add_bytes("phase3", t * 10 + i, {}, bytes_of("weights"));
      });
  }
  BOOST_TEST((versions_of(pool.view()) == Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_there_adds_nothing) {
  const HydraRun run;
  RunWriter writer = run.writer();
  Pool pool(writer);
  HydraRun::save(writer, 500);
  expect<UsageError>([&] { pool.add("phase3", 1000, {}); }, ErrorCode::not_found);
  write_file(writer.run().phase_folder("phase3") / "ckpt_phase3_step00000500.thalia", "torn");
  expect<IntegrityError>([&] { pool.add("phase3", 500, {}); }, ErrorCode::checksum_mismatch);
  BOOST_TEST(pool.view().next_version == 1u);
  BOOST_TEST(!has_file(run.pool(), "VERSION"));
}

BOOST_AUTO_TEST_CASE(a_run_without_a_pool_has_none) {
  RunConfig config = hydra_config();
  config.pool.reset();
  const HydraRun run(config);
  RunWriter writer = run.writer();
  expect<UsageError>([&] { read_pool(run.run()); }, ErrorCode::not_found);
  expect<UsageError>([&] { Pool pool(writer); }, ErrorCode::not_found);
}

BOOST_AUTO_TEST_CASE(a_limit_that_was_lowered_counts_from_the_next_writer_on) {
  const HydraRun run(small_pool(0));
  {
    RunWriter writer = run.writer();
    add_versions(writer, 1, 4);
    BOOST_TEST(read_pool(run.run()).versions.size() == 4u);
  }
  write_file(run.path() / "run.toml", run_config_text(small_pool(2), ConfigFormat::toml));
  RunWriter writer = run.writer();
  const Pool pool(writer);
  BOOST_TEST((versions_of(pool.view()) == Numbers{3, 4}));
}

BOOST_AUTO_TEST_SUITE_END()
