#include "inspect/facts_json.h"

#include "inspect/json_members.h"
#include "thalia/state/metadata.h"
#include "thalia/text.h"
#include "thalia/types.h"

namespace thalia::inspect {
namespace {

void add_wrapper(JsonWriter& json, const std::optional<WrapperFacts>& wrapper) {
  json.key("wrapper");
  if (!wrapper) {
    json.null();
    return;
  }
  json.begin_object().member("codec", codec_name(wrapper->codec));
  json.member("packed", wrapper->packed);
  json.member("seek_table", wrapper->has_seek_table);
  add_known(json, "frames", wrapper->frames);
  add_known(json, "checksum_inside", wrapper->checksum_inside);
  json.end_object();
}

void add_totals(JsonWriter& json, const std::optional<TensorTotals>& totals) {
  if (!totals) {
    for (const char* name : {"tensor_count", "parameters", "uncounted_tensors", "logical_bytes",
                             "value_bytes", "stored_bytes", "dtypes", "codecs", "lossy"})
      json.key(name).null();
    return;
  }
  const PackedWords::Count parameters = totals->parameters();
  json.member("tensor_count", totals->tensors()).member("parameters", parameters.parameters);
  json.member("uncounted_tensors", parameters.unknown);
  json.member("logical_bytes", totals->logical_bytes());
  add_known(json, "value_bytes", totals->value_bytes());
  add_known(json, "stored_bytes", totals->stored_bytes());
  json.key("dtypes").begin_array();
  for (const DTypeTotal& of : totals->dtypes()) {
    json.begin_object().member("dtype", dtype_name(of.dtype)).member("tensor_count", of.tensors);
    json.member("elements", of.elements).member("logical_bytes", of.logical_bytes).end_object();
  }
  json.end_array();
  add_list(json, "codecs", totals->codec_names());
  json.key("lossy");
  if (totals->quantized() == 0) {
    json.null();
    return;
  }
  json.begin_object().member("quantized_tensors", totals->quantized());
  add_known(json, "lossy_generation", totals->lossy_generation());
  add_known(json, "max_lossy_generations", totals->max_lossy_generations());
  json.end_object();
}

void add_checksum(JsonWriter& json, const ChecksumFacts& checksum) {
  json.key("checksum").begin_object().member("type", checksum.type);
  add_known(json, "tensors", checksum.tensors);
  add_known(json, "leaves", checksum.leaves);
  add_known(json, "block_bytes", checksum.block_bytes);
  add_known(json, "digest", checksum.digest);
  json.end_object();
}

void add_base(JsonWriter& json, const std::optional<BaseFacts>& base) {
  json.key("delta_base");
  if (!base) {
    json.null();
    return;
  }
  json.begin_object().key("path");
  base->path ? json.value(as_utf8(*base->path)) : json.null();
  json.member("checksum", base->checksum);
  add_known(json, "training_steps", base->training_steps);
  add_known(json, "depth", base->depth);
  json.end_object();
}

}  // namespace

std::string facts_json(const DescribedFile& facts) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", "thalia.info.1");
  json.member("path", as_utf8(facts.path)).member("format", file_format_name(facts.format));
  json.key("version");
  facts.version.empty() ? json.null() : json.value(facts.version);
  json.member("delta", facts.is_delta).member("side_file", facts.is_side_file);
  json.member("disk_bytes", facts.disk_bytes).member("file_bytes", facts.file_bytes);
  json.member("dead_bytes", facts.dead_bytes).member("debris_bytes", facts.debris_bytes);
  add_wrapper(json, facts.wrapper);
  add_known(json, "region_count", facts.regions);
  add_known(json, "connection_count", facts.connections);
  add_totals(json, facts.totals);
  add_known(json, "total_neurons", facts.neurons);
  add_known(json, "total_synapses", facts.synapses);
  add_known(json, "training_steps", facts.progress.steps);
  json.key("training_steps_member");
  const std::string& member = facts.progress.steps_member;
  member.empty() ? json.null() : json.value(as_utf8(member));
  add_known(json, "epoch", facts.progress.epoch);
  add_known(json, "timestamp", facts.timestamp);
  add_known(json, "generation", facts.generation);
  json.key("file_uuid");
  facts.uuid ? json.value(uuid_text(*facts.uuid)) : json.null();
  add_list(json, "flags", facts.flags);
  add_checksum(json, *facts.checksum);
  add_known(json, "content_hash", facts.content_hash);
  add_base(json, facts.base);
  add_list(json, "warnings", facts.warnings);
  add_list(json, "beside", facts.losses);
  const auto events = growth_events(facts.metadata);
  json.key("growth_history").raw(events ? growth_history_json(*events) : "null");
  json.key("metadata").raw(facts.metadata.empty() ? "null" : facts.metadata);
  json.end_object();
  return text;
}

}  // namespace thalia::inspect
