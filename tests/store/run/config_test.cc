#include "thalia/store/config.h"

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(run_config)

namespace {

RunConfig full_config() {
  RunConfig config = hydra_config();
  config.extension = "ckpt.thalia";
  config.deltas = {.kind = DeltaPolicy::Kind::cost, .max_cost = 1.25, .pack = false};
  config.phases[0].retention = {.keep_last = 5,
                                .keep_every_steps = 1000,
                                .keep_every_seconds = 3600,
                                .keep_best = 3,
                                .max_age_seconds = 86'400,
                                .max_bytes = 1ull << 40,
                                .needed_bases = NeededBases::squash};
  config.phases[1].retention = {.keep_last = std::nullopt};
  config.phases[2].metric.reset();
  config.pool->tensors = {"model_record.*"};
  return config;
}

std::string phases(const std::string& rest = "") {
  return "version = 1\n[[phases]]\nname = \"train\"\n" + rest;
}

RunConfig parse(const std::string& toml) {
  return parse_run_config(toml, ConfigFormat::toml, "run.toml");
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_formats_give_the_same_text_again) {
  for (const RunConfig& config : {full_config(), hydra_config()}) {
    for (const ConfigFormat format : {ConfigFormat::toml, ConfigFormat::json}) {
      const std::string text = run_config_text(config, format);
      const RunConfig again = parse_run_config(text, format);
      BOOST_TEST(run_config_text(again, format) == text);
      BOOST_TEST(again.phases.size() == config.phases.size());
      BOOST_TEST((again.phases[0].retention.keep_best == config.phases[0].retention.keep_best));
      BOOST_TEST((again.phases[1].retention.keep_last == config.phases[1].retention.keep_last));
      BOOST_TEST((again.pool == config.pool));
      BOOST_TEST((again.deltas == config.deltas));
      BOOST_TEST(again.extension == config.extension);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_left_out_has_the_defaults) {
  const RunConfig config = parse(phases());
  BOOST_TEST(config.extension == "thalia");
  BOOST_TEST(config.phases[0].retention.keep_last.value() == 20);
  BOOST_TEST(config.phases[0].gate_name() == "train_best");
  BOOST_TEST((config.deltas.kind == DeltaPolicy::Kind::cost));
  BOOST_TEST(config.deltas.pack);
  BOOST_TEST(!config.pool);
  // A table of rules has those that it names, and no others.
  const RunConfig ruled = parse(phases("[phases.retention]\nkeep_best = 2\n"));
  BOOST_TEST(!ruled.phases[0].retention.keep_last);
  BOOST_TEST(ruled.phases[0].retention.keep_best.value() == 2);
}

BOOST_AUTO_TEST_CASE(an_error_names_file_member_and_value) {
  BOOST_CHECK_EXCEPTION(parse(phases("save_interval = -1\n")), FormatError,
                        says(ErrorCode::bad_value, "run.toml", "phases[0].save_interval", "-1"));
  BOOST_CHECK_EXCEPTION(parse(phases("gates = \"x\"\n")), FormatError,
                        says(ErrorCode::bad_value, "phases[0].gates", "did you mean 'gate'"));
  BOOST_CHECK_EXCEPTION(parse("version = 1\n[[phases]]\nname = \"../up\"\n"), FormatError,
                        says(ErrorCode::bad_value, "phases[0].name", "../up"));
  BOOST_CHECK_EXCEPTION(parse("version = 1\nname = "), FormatError,
                        says(ErrorCode::bad_value, "run.toml", "line 2"));
  // toml++ asserts of these.
  for (const char* table : {"[=]", "[\n", "[[\xc3\xa9]]"})
    BOOST_CHECK_EXCEPTION(parse(table), FormatError,
                          says(ErrorCode::bad_value, "run.toml", "no TOML"));
  BOOST_CHECK_EXCEPTION(parse("version = 2\n"), UnsupportedError,
                        says(ErrorCode::unsupported_version, "version", "got 2"));
  BOOST_CHECK_EXCEPTION(parse("version = 1\n"), FormatError,
                        says(ErrorCode::bad_value, "phases", "got 0"));
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  const auto refused = [](const std::string& toml, const char* field) {
    BOOST_CHECK_EXCEPTION(parse(toml), FormatError, says(ErrorCode::bad_value, field));
  };
  refused(phases("[[phases]]\nname = \"train\"\n"), "phases[1].name");
  refused(phases("[[phases]]\nname = \"gates\"\n"), "phases[1].name");
  refused("version = 1\nextension = \"sha256\"\n" + phases().substr(12), "extension");
  refused(phases("[pool]\nphase = \"league\"\n"), "pool");
  refused(phases("[pool]\nphase = \"train\"\nself_weight = -1\n"), "pool.self_weight");
  refused(phases("[deltas]\nmax_cost = 1.0\n"), "deltas.max_cost");
  refused(phases("[deltas]\npack = 1\n"), "deltas.pack");
  RunConfig none;
  BOOST_CHECK_EXCEPTION(run_config_text(none, ConfigFormat::toml), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(the_specifications_run_is_as_it_says) {
  const RunConfig config = hydra_config();
  BOOST_TEST(config.phase("phase1").gate_name() == "bc_best");
  BOOST_TEST(config.phase("phase2").gate_name() == "distill_best");
  BOOST_TEST((config.phase("phase1").metric->direction == Direction::min));
  BOOST_TEST((config.phase("phase3").metric->direction == Direction::max));
  BOOST_TEST(config.phase("phase1").is_due(20'000));
  BOOST_TEST(!config.phase("phase1").is_due(20'500));
  BOOST_TEST(config.phase("phase2").is_due(20'500));
  BOOST_TEST(config.pool->keep == 20);
  BOOST_CHECK_EXCEPTION(config.phase("phase4"), UsageError,
                        says(ErrorCode::not_found, "phase1, phase2, phase3"));
}

BOOST_AUTO_TEST_SUITE_END()
