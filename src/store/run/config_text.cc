// What tree_of() writes is what config_of() reads: a member that is added to one is added to the
// other. People read and change these texts, so members that are not set are left out.
#include "store/run/config_text.h"

#include <fmt/format.h>

#include <string_view>

#include "json/writer.h"

namespace thalia::store {
namespace {

template <typename T>
void add_set(Value& object, const char* name, const std::optional<T>& value) {
  if (value) object.add(name, *value);
}

const char* name_of(Direction direction) {
  return direction == Direction::min ? "min" : "max";
}

const char* name_of(DeltaPolicy::Kind kind) {
  switch (kind) {
    case DeltaPolicy::Kind::never:
      return "never";
    case DeltaPolicy::Kind::every:
      return "every";
    case DeltaPolicy::Kind::cost:
      break;
  }
  return "cost";
}

Value tree_of(const RetentionPolicy& policy) {
  Value tree = Value::object();
  add_set(tree, "keep_last", policy.keep_last);
  add_set(tree, "keep_every_steps", policy.keep_every_steps);
  add_set(tree, "keep_every_seconds", policy.keep_every_seconds);
  add_set(tree, "keep_best", policy.keep_best);
  add_set(tree, "max_age_seconds", policy.max_age_seconds);
  add_set(tree, "max_bytes", policy.max_bytes);
  if (policy.needed_bases == NeededBases::squash) tree.add("needed_bases", "squash");
  return tree;
}

Value tree_of(const PhaseConfig& phase) {
  Value tree = Value::object();
  tree.add("name", phase.name);
  tree.add("gate", phase.gate_name());
  if (phase.save_interval != 0) tree.add("save_interval", phase.save_interval);
  if (!phase.required_keys.empty()) tree.add("required_keys", list_of(phase.required_keys));
  if (phase.metric) {
    Value& metric = tree.add("metric", Value::object());
    metric.add("name", phase.metric->name);
    metric.add("direction", name_of(phase.metric->direction));
  }
  tree.add("retention", tree_of(phase.retention));
  return tree;
}

Value tree_of(const PoolConfig& pool) {
  Value tree = Value::object();
  tree.add("phase", pool.phase);
  tree.add("folder", pool.folder);
  tree.add("keep", pool.keep);
  tree.add("cache", pool.cache);
  tree.add("sigma_floor", pool.sigma_floor);
  tree.add("self_weight", pool.self_weight);
  tree.add("pool_weight", pool.pool_weight);
  tree.add("baseline_weight", pool.baseline_weight);
  if (!pool.baseline.empty()) tree.add("baseline", pool.baseline);
  tree.add("anchors", list_of(pool.anchors));
  if (!pool.tensors.empty()) tree.add("tensors", list_of(pool.tensors));
  return tree;
}

bool is_list_of_tables(const Value& value) {
  return value.is_array() && value.size() > 0 && value.elements().front().is_object();
}

// Plain members first: after the heading of a table, they would be that table's.
void write_table(std::string& out, const Value& table, const std::string& prefix) {
  for (const Value::Member& member : table.members()) {
    if (member.value.is_object() || is_list_of_tables(member.value)) continue;
    // A JSON text is a TOML value, for lists, numbers, texts and truths.
    out += fmt::format("{} = {}\n", member.name, to_json(member.value));
  }
  for (const Value::Member& member : table.members()) {
    const std::string name = prefix + member.name;
    if (member.value.is_object()) {
      out += fmt::format("\n[{}]\n", name);
      write_table(out, member.value, name + ".");
    } else if (is_list_of_tables(member.value)) {
      for (const Value& element : member.value.elements()) {
        out += fmt::format("\n[[{}]]\n", name);
        write_table(out, element, name + ".");
      }
    }
  }
}

// Lists of anything but tables stay on one line.
void write_json(JsonWriter& out, const Value& value) {
  if (value.is_object()) {
    out.begin_object();
    for (const Value::Member& member : value.members()) {
      out.key(member.name);
      write_json(out, member.value);
    }
    out.end_object();
  } else if (is_list_of_tables(value)) {
    out.begin_array();
    for (const Value& element : value.elements()) write_json(out, element);
    out.end_array();
  } else {
    out.raw(to_json(value));
  }
}

}  // namespace

Value list_of(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

Value tree_of(const RunConfig& config) {
  Value tree = Value::object();
  tree.add("version", 1);
  tree.add("extension", config.extension);
  if (!config.fixed_networks.empty()) tree.add("fixed_networks", list_of(config.fixed_networks));
  if (!config.required_keys.empty()) tree.add("required_keys", list_of(config.required_keys));
  Value& deltas = tree.add("deltas", Value::object());
  deltas.add("policy", name_of(config.deltas.kind));
  deltas.add("full_every", config.deltas.full_every);
  deltas.add("max_cost", config.deltas.max_cost);
  deltas.add("pack", config.deltas.pack);
  Value& phases = tree.add("phases", Value::array());
  for (const PhaseConfig& phase : config.phases) phases.push_back(tree_of(phase));
  if (config.pool) tree.add("pool", tree_of(*config.pool));
  return tree;
}

std::string toml_text(const Value& tree) {
  std::string text;
  write_table(text, tree, "");
  return text;
}

std::string pretty_json(const Value& tree) {
  std::string text;
  JsonWriter out(text, JsonIndent{});
  write_json(out, tree);
  return text + "\n";
}

}  // namespace thalia::store
