#include "cli/store/store_json.h"

#include "cli/print/json_result.h"

namespace thalia::cli {

void add_checkpoint(JsonWriter& json, const CheckpointEntry& entry) {
  json.begin_object().member("phase", entry.phase).member("step", entry.step);
  json.member("file", entry.file).member("file_bytes", entry.bytes);
  json.member("saved_at", entry.saved_at);
  add_known(json, "metric", entry.metric);
  json.member("digest", entry.has_digest).member("delta", entry.is_delta()).key("base");
  entry.base.empty() ? json.null() : json.value(entry.base);
  json.member("depth", entry.depth);
  add_known(json, "read_factor", entry.read_factor);
  add_list(json, "protected_by", entry.protected_by);
  json.end_object();
}

void add_gate(JsonWriter& json, const GateEntry& gate) {
  json.begin_object().member("name", gate.name).member("file", gate.file);
  json.member("file_bytes", gate.bytes).member("phase", gate.phase).member("step", gate.step);
  json.member("source_file", gate.source_file).member("sha256", gate.sha256);
  add_known(json, "metric", gate.metric);
  json.member("promoted_at", gate.promoted_at).end_object();
}

void add_pool_member(JsonWriter& json, const PoolMember& member) {
  json.begin_object().member("version", member.version).member("name", as_utf8(member.name));
  json.member("path", as_utf8(member.path.string())).member("anchor", member.is_anchor);
  json.member("phase", member.phase).member("step", member.step);
  json.member("mu", member.rating.mu).member("sigma", member.rating.sigma);
  json.member("conservative", member.rating.conservative());
  json.member("games_played", member.games_played).member("win_rate", member.win_rate);
  json.member("promoted_at", member.promoted_at).member("file_bytes", member.bytes);
  json.end_object();
}

void add_attempts(JsonWriter& json, const std::vector<LoadAttempt>& attempts) {
  json.key("attempts").begin_array();
  for (const LoadAttempt& attempt : attempts) {
    json.begin_object().member("path", as_utf8(attempt.path.string())).key("failure");
    attempt.failure.empty() ? json.null() : json.value(as_utf8(attempt.failure));
    json.end_object();
  }
  json.end_array();
}

}  // namespace thalia::cli
