// A configuration as a tree of values, whichever language it was written in, and back. What is
// checked here is checked once: names that a file system has, references that lead somewhere.
#include "thalia/store/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "store/run/config_text.h"
#include "store/run/fields.h"
#include "store/run/names.h"
#include "store/run/run_files.h"
#include "store/run/toml.h"
#include "thalia/state/value.h"
#include "thalia/text.h"

namespace thalia {
namespace {

using store::Fields;

constexpr std::uint64_t kConfigVersion = 1;
constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::uint32_t kMostKept = 1'000'000;
constexpr unsigned kMostPhases = 100;

std::string require_name(Fields& fields, std::string_view member, std::string name) {
  if (!store::is_name(name))
    fields.fail(member, fmt::format("'{}'", printable(name, 60)),
                "1 to 64 letters, digits, '.', '-' and '_', the first a letter or a digit");
  return name;
}

std::optional<std::string> optional_name(Fields& fields, std::string_view member) {
  std::optional<std::string> name = fields.text(member);
  if (name) *name = require_name(fields, member, std::move(*name));
  return name;
}

std::vector<std::string> names(Fields& fields, std::string_view member) {
  std::vector<std::string> found = fields.texts(member).value_or(std::vector<std::string>{});
  for (std::string& name : found) name = require_name(fields, member, std::move(name));
  return found;
}

template <typename T, std::size_t N>
T choice(Fields& fields, std::string_view member,
         const std::pair<std::string_view, T> (&choices)[N], T otherwise) {
  const std::optional<std::string> word = fields.text(member);
  if (!word) return otherwise;
  std::string all;
  for (const auto& [name, value] : choices) {
    if (name == *word) return value;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  fields.fail(member, fmt::format("'{}'", printable(*word, 60)), std::move(all));
}

constexpr std::pair<std::string_view, Direction> kDirections[] = {{"min", Direction::min},
                                                                  {"max", Direction::max}};
constexpr std::pair<std::string_view, NeededBases> kBases[] = {{"keep", NeededBases::keep},
                                                               {"squash", NeededBases::squash}};
constexpr std::pair<std::string_view, DeltaPolicy::Kind> kPolicies[] = {
    {"never", DeltaPolicy::Kind::never},
    {"every", DeltaPolicy::Kind::every},
    {"cost", DeltaPolicy::Kind::cost}};

Metric read_metric(const Value& object, const std::string& place) {
  Fields fields(object, place);
  Metric metric;
  metric.name = fields.text("name").value_or("");
  if (metric.name.empty()) fields.fail("name", "nothing", "the metric's name");
  metric.direction = choice(fields, "direction", kDirections, Direction::min);
  fields.require_all_known();
  return metric;
}

std::optional<std::uint32_t> count(Fields& fields, std::string_view member) {
  const auto number = fields.integer(member, 0, kMostKept);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

// Rules that are not named are not set: without the table alone, the specification's holds.
RetentionPolicy read_retention(const Value& object, const std::string& place) {
  Fields fields(object, place);
  RetentionPolicy policy;
  policy.keep_last = count(fields, "keep_last");
  policy.keep_every_steps = fields.integer("keep_every_steps", 1, kAny);
  policy.keep_every_seconds = fields.integer("keep_every_seconds", 1, kAny);
  policy.keep_best = count(fields, "keep_best");
  policy.max_age_seconds = fields.integer("max_age_seconds", 1, kAny);
  policy.max_bytes = fields.integer("max_bytes", 1, kAny);
  policy.needed_bases = choice(fields, "needed_bases", kBases, NeededBases::keep);
  fields.require_all_known();
  return policy;
}

PhaseConfig read_phase(const Value& object, const std::string& place) {
  Fields fields(object, place);
  PhaseConfig phase;
  phase.name = require_name(fields, "name", fields.text("name").value_or(""));
  phase.gate = optional_name(fields, "gate").value_or("");
  phase.save_interval = fields.integer("save_interval", 0, kMaxStep).value_or(0);
  phase.required_keys = fields.texts("required_keys").value_or(std::vector<std::string>{});
  if (const Value* metric = fields.object("metric"))
    phase.metric = read_metric(*metric, fields.place_of("metric."));
  if (const Value* retention = fields.object("retention"))
    phase.retention = read_retention(*retention, fields.place_of("retention."));
  fields.require_all_known();
  return phase;
}

DeltaPolicy read_deltas(const Value& object) {
  Fields fields(object, "deltas.");
  DeltaPolicy policy;
  policy.kind = choice(fields, "policy", kPolicies, DeltaPolicy::Kind::cost);
  policy.full_every =
      static_cast<unsigned>(fields.integer("full_every", 2, 256).value_or(policy.full_every));
  policy.max_cost = fields.number("max_cost").value_or(policy.max_cost);
  if (!(policy.max_cost > 1 && policy.max_cost <= 100))
    fields.fail("max_cost", fmt::format("{}", policy.max_cost), "more than 1, at most 100");
  policy.pack = fields.truth("pack").value_or(policy.pack);
  fields.require_all_known();
  return policy;
}

double weight(Fields& fields, std::string_view member, double otherwise) {
  const double value = fields.number(member).value_or(otherwise);
  if (!std::isfinite(value) || value < 0)
    fields.fail(member, fmt::format("{}", value), "0 or more");
  return value;
}

PoolConfig read_pool(const Value& object) {
  Fields fields(object, "pool.");
  PoolConfig pool;
  pool.phase = require_name(fields, "phase", fields.text("phase").value_or(""));
  pool.folder = optional_name(fields, "folder").value_or(pool.folder);
  for (const std::string_view taken : {store::kCheckpoints, store::kFollowers})
    if (pool.folder == taken)
      fields.fail("folder", fmt::format("'{}'", taken), "a folder of its own");
  pool.keep = count(fields, "keep").value_or(pool.keep);
  pool.cache = static_cast<std::uint32_t>(fields.integer("cache", 1, 10'000).value_or(pool.cache));
  pool.sigma_floor = weight(fields, "sigma_floor", pool.sigma_floor);
  pool.self_weight = weight(fields, "self_weight", pool.self_weight);
  pool.pool_weight = weight(fields, "pool_weight", pool.pool_weight);
  pool.baseline_weight = weight(fields, "baseline_weight", pool.baseline_weight);
  if (pool.self_weight + pool.pool_weight + pool.baseline_weight <= 0)
    fields.fail("self_weight", "0", "a weight of the three that is more than 0");
  pool.baseline = optional_name(fields, "baseline").value_or("");
  pool.anchors = names(fields, "anchors");
  pool.tensors = fields.texts("tensors").value_or(std::vector<std::string>{});
  fields.require_all_known();
  return pool;
}

// What each member by itself cannot tell.
void check_together(const RunConfig& config) {
  const auto fail = [](std::string field, std::string value, std::string expected) {
    throw FormatError(
        ErrorCode::bad_value, {},
        {.field = std::move(field), .value = std::move(value), .bound = std::move(expected)});
  };
  if (config.phases.empty() || config.phases.size() > kMostPhases)
    fail("phases", std::to_string(config.phases.size()), fmt::format("1 to {}", kMostPhases));
  std::vector<std::string> folders{std::string(store::kGates), std::string(store::kEvaluation)};
  const auto add = [&](const std::string& name, const std::string& field) {
    if (std::ranges::find(folders, name) != folders.end())
      fail(field, fmt::format("'{}'", name), "a name that no other folder of the run has");
    folders.push_back(name);
  };
  std::vector<std::string> gates;
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const std::string field = fmt::format("phases[{}]", i);
    add(config.phases[i].name, field + ".name");
    const std::string gate = config.phases[i].gate_name();
    if (std::ranges::find(gates, gate) != gates.end())
      fail(field + ".gate", fmt::format("'{}'", gate), "a gate that no other phase has");
    gates.push_back(gate);
  }
  for (const std::string& name : config.fixed_networks) add(name, "fixed_networks");
  if (!config.pool) return;
  config.phase(config.pool->phase);
}

}  // namespace

RunConfig store::config_of(const Value& tree) {
  Fields fields(tree);
  const std::uint64_t version = fields.integer("version", 0, kAny).value_or(0);
  if (version != kConfigVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, "a configuration of another version",
                           {.field = "version",
                            .value = std::to_string(version),
                            .bound = std::to_string(kConfigVersion)});
  }
  RunConfig config;
  config.extension = fields.text("extension").value_or(config.extension);
  if (!is_extension(config.extension))
    fields.fail("extension", fmt::format("'{}'", printable(config.extension, 60)),
                "1 to 16 letters, digits and '.', not ending in sha256, json, jsonl, txt or toml");
  config.fixed_networks = names(fields, "fixed_networks");
  config.required_keys = fields.texts("required_keys").value_or(std::vector<std::string>{});
  if (const Value* deltas = fields.object("deltas")) config.deltas = read_deltas(*deltas);
  if (const std::vector<Value>* phases = fields.list("phases"))
    for (const Value& phase : *phases)
      config.phases.push_back(read_phase(phase, fmt::format("phases[{}].", config.phases.size())));
  if (const Value* pool = fields.object("pool")) config.pool = read_pool(*pool);
  fields.require_all_known();
  try {
    check_together(config);
  } catch (const UsageError& error) {
    fields.fail("pool", fmt::format("phase '{}'", config.pool->phase), error.message());
  }
  return config;
}

const PhaseConfig& RunConfig::phase(std::string_view name) const {
  const auto found = std::ranges::find(phases, name, &PhaseConfig::name);
  if (found != phases.end()) return *found;
  std::string all;
  for (const PhaseConfig& phase : phases) all += (all.empty() ? "" : ", ") + phase.name;
  throw UsageError(ErrorCode::not_found, "the run has no such phase",
                   {.field = "phase",
                    .value = fmt::format("'{}'", printable(name, 60)),
                    .bound = std::move(all)});
}

bool RunConfig::is_thalia() const noexcept {
  return extension == "thalia" || extension.ends_with(".thalia");
}

RunConfig hydra_config() {
  RunConfig config;
  // Each checkpoint is one self-describing record.
  config.deltas.kind = DeltaPolicy::Kind::never;
  config.required_keys = {
      "model_record", "optimizer_record", "scheduler_record", "rng_state", "global_step",
      "phase",        "config",           "metrics",          "timestamp", "checkpoint_version"};
  config.fixed_networks = {"grp"};
  config.phases = {
      {.name = "phase1",
       .metric = Metric{"validation_loss", Direction::min},
       .gate = "bc_best",
       .save_interval = 10'000},
      {.name = "phase2",
       .metric = Metric{"conservative_rating", Direction::max},
       .gate = "distill_best",
       .save_interval = 500,
       .required_keys = {"teacher_state_dict"}},
      {.name = "phase3",
       .metric = Metric{"conservative_rating", Direction::max},
       .gate = "league_best",
       .save_interval = 500,
       .required_keys = {"opponent_pool_metadata"}},
  };
  config.pool = PoolConfig{.phase = "phase3",
                           .baseline = "distill_best",
                           .anchors = {"bc_best", "distill_best"},
                           .tensors = {"model_record*"}};
  return config;
}

RunConfig parse_run_config(std::string_view text, ConfigFormat format, std::string_view name) {
  return with_path(name, [&] {
    if (text.size() > store::kMaxTextBytes)
      fail_limit("configuration", "of its bytes", text.size(), store::kMaxTextBytes);
    return store::config_of(format == ConfigFormat::toml ? store::parse_toml(text)
                                                         : parse_json(text));
  });
}

std::string run_config_text(const RunConfig& config, ConfigFormat format) {
  const Value tree = store::tree_of(config);
  try {
    store::config_of(tree);
  } catch (const FormatError& error) {
    throw UsageError(ErrorCode::bad_argument, error.message(), error.context());
  }
  return format == ConfigFormat::toml ? store::toml_text(tree) : store::pretty_json(tree);
}

}  // namespace thalia
