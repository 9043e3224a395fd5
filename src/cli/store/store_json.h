// What a store has as JSON, docs/use/json.md.
#pragma once

#include "json/writer.h"
#include "thalia/store/pool.h"
#include "thalia/store/retention.h"
#include "thalia/store/run.h"

namespace thalia::cli {

void add_checkpoint(JsonWriter& json, const CheckpointEntry& entry);
void add_gate(JsonWriter& json, const GateEntry& gate);
void add_pool_member(JsonWriter& json, const PoolMember& member);
/// The value of a member "attempts".
void add_attempts(JsonWriter& json, const std::vector<LoadAttempt>& attempts);

}  // namespace thalia::cli
