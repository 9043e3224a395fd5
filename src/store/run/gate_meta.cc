#include "store/run/gate_meta.h"

#include "base/fail.h"
#include "store/run/config_text.h"
#include "store/run/fields.h"
#include "store/run/names.h"
#include "thalia/state/value.h"

namespace thalia::store {
namespace {

constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};

GateEntry gate_of(Fields& fields) {
  GateEntry gate;
  gate.phase = fields.text("phase").value_or("");
  gate.step = fields.integer("step", 0, kMaxStep).value_or(0);
  gate.source_file = fields.text("source_file").value_or("");
  gate.sha256 = fields.text("sha256").value_or("");
  gate.metric = fields.number("metric");
  gate.promoted_at = fields.integer("promoted_at", 0, kAnyNumber).value_or(0);
  return gate;
}

Value tree_of_gate(const GateEntry& gate) {
  Value object = Value::object();
  if (!gate.name.empty()) object.add("gate", gate.name);
  object.add("phase", gate.phase);
  object.add("step", gate.step);
  object.add("source_file", gate.source_file);
  object.add("sha256", gate.sha256);
  if (gate.metric) object.add("metric", *gate.metric);
  object.add("promoted_at", gate.promoted_at);
  return object;
}

}  // namespace

std::vector<std::string> GateMeta::digests() const {
  std::vector<std::string> found;
  if (!before) return found;
  for (const GateEntry* const one : {&gate, &*before})
    if (!one->sha256.empty()) found.push_back(one->sha256);
  return found;
}

std::optional<GateMeta> read_gate_meta(const RunFolder& run, const std::string& gate) {
  try {
    const auto text = run.files().read_text(run.gates() / (gate + std::string(kMetaEnding)));
    if (!text) return std::nullopt;
    const Value object = parse_json(*text);
    Fields fields(object);
    GateMeta meta{.gate = gate_of(fields)};
    if (const Value* const before = fields.object("replaces")) {
      Fields of_before(*before);
      meta.before = gate_of(of_before);
    }
    return meta;
  } catch (const FormatError&) {
    // What is no metadata is as good as none.
    return std::nullopt;
  }
}

std::string gate_text(const GateMeta& meta) {
  Value object = tree_of_gate(meta.gate);
  if (meta.before) object.add("replaces", tree_of_gate(*meta.before));
  return pretty_json(object);
}

}  // namespace thalia::store
