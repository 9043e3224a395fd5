// Metadata of 0.1 files and of brains do not have the same members: some of the former are
// components of the state, and 1.0 files write some anew. So take_v01_metadata() leaves a note in
// the brain's metadata: the keys in their order, the timestamp, and the values that a 1.0 file
// would not keep. make_v01_metadata() uses the note to write the same members again, with what has
// changed since; without one it writes what the original would.
#include "formats/v01/metadata.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "formats/v01/json.h"
#include "thalia/state/brain.h"
#include "thalia/state/metadata.h"

namespace thalia::formats {
namespace {

constexpr std::array<std::string_view, 6> kComponents{
    "config", "theta", "scheduler", "trial_state", "oscillators", "neuromodulators"};
// Written anew with every 1.0 file.
constexpr std::array<std::string_view, 3> kWrittenAnew{"version", "thalia_version", "created"};
constexpr std::string_view kKeys = "keys";
constexpr std::string_view kValues = "values";

template <std::size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Members that every 1.0 file is given, although there is nothing in them.
bool is_empty_member(const Value& value) {
  if (value.kind() == Value::Kind::string) return value.as_string().empty();
  return (value.is_array() || value.is_object()) && value.size() == 0;
}

// A component with tensors cannot be in JSON; it goes into a region of its own.
const Value* component_of(const BrainState& brain, std::string_view name) {
  const Value* value = brain.state.find(name);
  return value == nullptr || value->has_tensors() ? nullptr : value;
}

constexpr std::string_view kHistory = "growth_history";

std::vector<GrowthEvent> events_of(const Value& history) {
  Value metadata = Value::object();
  metadata.add(std::string(kHistory), history);
  return checkpoint_metadata(metadata).growth_history;
}

// Whether the way through a 1.0 file would change the text: there all events have one shape.
bool is_rewritten(const Value& history) {
  Value metadata = Value::object();
  metadata.add(std::string(kHistory), history);
  return to_value(checkpoint_metadata(metadata)).at(kHistory) != history;
}

// A Value looks names up one by one; with as many members as a file likes that would be quadratic.
using MembersByName = std::unordered_map<std::string_view, const Value*>;

MembersByName members_by_name(const Value* object) {
  MembersByName members;
  if (object == nullptr || !object->is_object()) return members;
  for (const auto& [name, value] : object->members()) members.emplace(name, &value);
  return members;
}

const Value* found(const MembersByName& members, std::string_view name) {
  const auto place = members.find(name);
  return place == members.end() ? nullptr : place->second;
}

// The value that was in the 0.1 file, if it still says the same.
const Value* noted_value(const MembersByName& metadata, const MembersByName& values,
                         std::string_view name) {
  const Value* noted = found(values, name);
  if (noted == nullptr || name != kHistory) return noted;
  const Value* current = found(metadata, name);
  return current != nullptr && events_of(*current) == events_of(*noted) ? noted : nullptr;
}

// Members in the order in which they were read, those that came since after them.
Value noted_metadata(const BrainState& brain, const Value& note) {
  Value out = Value::object();
  const MembersByName metadata = members_by_name(&brain.metadata);
  const MembersByName values = members_by_name(note.find(kValues));
  std::unordered_set<std::string_view> known;
  for (const Value& key : note.at(kKeys).elements()) {
    if (key.kind() != Value::Kind::string || known.contains(key.as_string())) continue;
    const std::string& name = key.as_string();
    const Value* value = noted_value(metadata, values, name);
    if (value == nullptr)
      value = is_v01_metadata_component(name) ? component_of(brain, name) : found(metadata, name);
    if (value == nullptr) continue;
    out.add(name, *value);
    known.insert(name);
  }
  for (const auto& [name, value] : brain.metadata.members()) {
    if (name == kV01Note || is_one_of(kWrittenAnew, name) || is_empty_member(value)) continue;
    if (known.insert(name).second) out.add(name, value);
  }
  for (const std::string_view name : kComponents) {
    const Value* value = component_of(brain, name);
    if (value != nullptr && out.find(name) == nullptr) out.add(std::string(name), *value);
  }
  // The brain's count is the current one, whatever the note has.
  if (Value* steps = out.find("training_steps")) *steps = brain.training_steps;
  return out;
}

struct Share {
  double count = 0;
  double bytes = 0;
};

// As the original computes them: a sparse tensor counts as the elements that it stands for.
Value precision_statistics(const V01Document& document) {
  constexpr double kMebibyte = 1024 * 1024;
  enum Group : std::size_t { fp32, fp16, fp64, integer, other };
  constexpr std::array<std::string_view, 5> kGroups{"fp32", "fp16", "fp64", "int", "other"};
  std::array<Share, kGroups.size()> shares;
  const auto group_of = [](DType dtype) {
    return dtype == DType::f32                          ? fp32
           : dtype == DType::f16                        ? fp16
           : dtype == DType::f64                        ? fp64
           : dtype == DType::i32 || dtype == DType::i64 ? integer
                                                        : other;
  };
  double total = 0;
  for (const V01Entry& entry : document.entries) {
    for_each_tensor(entry.state, [&](const std::string&, const Tensor& tensor) {
      const std::uint64_t element_bytes = dtype_bits(tensor.dtype()) / 8;
      const auto bytes = static_cast<double>(tensor.element_count() * element_bytes);
      Share& share = shares[group_of(tensor.dtype())];
      share.count += 1;
      share.bytes += bytes;
      total += bytes;
    });
  }
  Value out = Value::object();
  for (std::size_t i = 0; i < kGroups.size(); ++i) {
    Value& group = out[kGroups[i]];
    group["count"] = shares[i].count;
    group["bytes"] = shares[i].bytes;
    group["mb"] = shares[i].bytes / kMebibyte;
    group["percent"] = total == 0 ? 0.0 : shares[i].bytes / total * 100;
  }
  out["total_mb"] = total / kMebibyte;
  return out;
}

// The user's members first, then those that the original adds, in its order.
Value fresh_metadata(const BrainState& brain, const V01Document& document) {
  Value out = Value::object();
  for (const auto& [name, value] : brain.metadata.members())
    if (name != kV01Note) out.add(name, value);
  const auto put = [&](std::string_view name, Value value) {
    out.erase(name);
    out.add(std::string(name), std::move(value));
  };
  const auto kept = [&](std::string_view name, const Value& otherwise) {
    const Value* value = brain.metadata.find(name);
    put(name, value == nullptr ? otherwise : *value);
  };
  const auto component = [&](std::string_view name) {
    const Value* value = component_of(brain, name);
    put(name, value == nullptr ? Value::object() : *value);
  };
  std::string time = iso_time(document.header.timestamp);
  // The original writes UTC without saying so.
  if (time.ends_with('Z')) time.pop_back();
  put("timestamp", std::move(time));
  // The last version of the original; readers warn of others.
  put("thalia_version", "0.2.0");
  put("checkpoint_format_version", "0.1.0");
  kept("pytorch_version", "none");
  kept("device", "cpu");
  put("training_steps", brain.training_steps);
  for (const char* name : {"config", "theta", "scheduler", "trial_state"}) component(name);
  kept("growth_history", Value::array());
  kept("precision_policy", "fp32");
  put("precision_stats", precision_statistics(document));
  for (const char* name : {"oscillators", "neuromodulators"})
    if (component_of(brain, name) != nullptr) component(name);
  return out;
}

const Value* note_of(const BrainState& brain) noexcept {
  const Value* note = brain.metadata.find(kV01Note);
  const Value* keys = note == nullptr ? nullptr : note->find(kKeys);
  return keys != nullptr && keys->is_array() ? note : nullptr;
}

}  // namespace

bool is_v01_metadata_component(std::string_view name) noexcept {
  return is_one_of(kComponents, name);
}

void take_v01_metadata(const V01Document& document, BrainState& brain) {
  Value note = Value::object();
  note["timestamp"] = document.header.timestamp;
  Value keys = Value::array();
  Value values = Value::object();
  for (const auto& [name, value] : document.metadata.members()) {
    keys.push_back(name);
    if (is_v01_metadata_component(name)) {
      brain.state[name] = value;
      continue;
    }
    if (name == kV01Note || is_one_of(kWrittenAnew, name) ||
        (name == kHistory && is_rewritten(value)))
      values.add(name, value);
    if (name != kV01Note) brain.metadata.add(name, value);
  }
  note[kKeys] = std::move(keys);
  if (values.size() != 0) note[kValues] = std::move(values);
  brain.metadata.add(std::string(kV01Note), std::move(note));
}

Value make_v01_metadata(const BrainState& brain, const V01Document& document) {
  const Value* note = note_of(brain);
  return note == nullptr ? fresh_metadata(brain, document) : noted_metadata(brain, *note);
}

std::optional<std::uint64_t> noted_v01_timestamp(const BrainState& brain) noexcept {
  const Value* note = note_of(brain);
  const Value* time = note == nullptr ? nullptr : note->find("timestamp");
  return time == nullptr ? std::nullopt : v01_unsigned(*time);
}

}  // namespace thalia::formats
