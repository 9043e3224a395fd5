// Regions are copied as extract() and merge() copy them, under other names. The few texts that name
// regions are changed: axes, connections of the brain-wide state, growth histories. Everything that
// can be refused for its name is looked at before the output is created.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "checkpoint/packing.h"
#include "container/file/short_name.h"
#include "convert/conversions.h"
#include "convert/tensor_flow.h"
#include "convert/thalia_copy.h"
#include "state/brain/axes.h"
#include "state/brain/ensemble.h"
#include "state/brain/stored_region.h"
#include "state/value/value_json.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/metadata.h"

namespace thalia::formats {
namespace {

std::vector<std::string> region_names(const Reader& reader) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i)
    names.emplace_back(reader.region(i).name());
  return names;
}

Value metadata_of(const Reader& reader, const ReadLimits& limits) {
  return with_path(reader.path().native(), [&] {
    return reader.metadata_json().empty()
               ? Value::object()
               : state::parse_json_object(reader.metadata_json(), limits);
  });
}

// What a caller wants to have in the output's metadata.
Value given_metadata(const std::string& json, const ReadLimits& limits) {
  if (json.empty()) return Value::object();
  try {
    return state::parse_json_object(json, limits);
  } catch (const FormatError& error) {
    fail_argument(ErrorCode::bad_argument, "metadata_json", printable(json, 60), "a JSON object",
                  error.message());
  }
}

// A region without tensors that says of all connections what their matrices were.
RegionSpec region_of_connections(std::vector<Value> connections) {
  Value metadata = Value::object();
  Value& tree = metadata.add(std::string(state::kTreeMember), Value::object());
  tree.add("version", 1);
  tree.add("components", Value::object());
  state::put_connections(metadata, std::move(connections));
  return {.name = std::string(state::kBrainRegion), .metadata_json = to_json(metadata)};
}

// One input on its way into an ensemble.
class AddedBrain {
 public:
  AddedBrain(const Reader& reader, std::string prefix, const ReadLimits& limits)
      : reader_(reader), prefix_(std::move(prefix)), limits_(limits) {
    for (std::string& name : region_names(reader)) {
      state::name_in_ensemble(prefix_, name);  // throws where it cannot be
      names_.insert(std::move(name));
    }
  }

  state::EnsembleBrain told() const {
    return {.prefix = prefix_,
            .training_steps = reader_.header().training_steps,
            .metadata = metadata_of(reader_, limits_)};
  }

  /// `connections` gets what the brain says of those that are copied.
  void copy(ThaliaCopy& copy, std::vector<Value>& connections) const {
    copy.begin_brain();
    std::vector<Value> told;
    for (std::uint32_t i = 0; i < reader_.region_count(); ++i)
      copy.copy_region(reader_, i, [&](RegionSpec& region) { change(region, told); });
    for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
      if (!copy.copy_connection(reader_.connection(i))) continue;
      connections.push_back(told.empty() ? Value::object() : std::move(told[i]));
    }
  }

 private:
  void change(RegionSpec& region, std::vector<Value>& told) const {
    const bool is_own = region.name == state::kBrainRegion;
    region.name = state::name_in_ensemble(prefix_, region.name);
    if (region.metadata_json.empty()) return;
    Value metadata = with_path(reader_.path().native(), [&] {
      return state::parse_json_object(region.metadata_json, limits_);
    });
    if (is_own) told = state::take_connections(metadata, reader_.connection_count());
    state::rename_sources(metadata, [&](const std::string& name) {
      return names_.contains(name) ? state::name_in_ensemble(prefix_, name) : name;
    });
    region.metadata_json = to_json(metadata);
  }

  const Reader& reader_;
  std::string prefix_;
  const ReadLimits& limits_;
  std::unordered_set<std::string> names_;
};

// What a file says of all its connections; empty if it says nothing.
std::vector<Value> connections_told(const Reader& reader, const ReadLimits& limits) {
  const auto own = reader.find_region(state::kBrainRegion);
  if (!own || own->metadata_json().empty()) return {};
  Value metadata = state::parse_json_object(own->metadata_json(), limits);
  return state::take_connections(metadata, reader.connection_count());
}

// One brain on its way out of an ensemble.
void copy_brain(const Reader& reader, const state::EnsembleBrain& brain, ThaliaCopy& copy,
                const ReadLimits& limits) {
  const auto own_name = [&](std::string_view name) {
    return state::name_in_brain(brain.prefix, name);
  };
  // Which connections are the brain's is known before its brain-wide region is written.
  std::unordered_set<std::string> short_names;
  std::vector<std::uint32_t> regions;
  bool has_own = false;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const std::string_view name = reader.region(i).name();
    const auto own = own_name(name);
    if (!own) continue;
    regions.push_back(i);
    has_own |= *own == state::kBrainRegion;
    short_names.insert(container::short_name_string(name));
  }
  std::vector<Value> all = connections_told(reader, limits);
  std::vector<std::uint32_t> connections;
  std::vector<Value> told;
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView view = reader.connection(i);
    if (!short_names.contains(view.source) || !short_names.contains(view.target)) continue;
    connections.push_back(i);
    if (!all.empty()) told.push_back(std::move(all[i]));
  }
  for (const std::uint32_t i : regions) {
    copy.copy_region(reader, i, [&](RegionSpec& region) {
      region.name = *own_name(region.name);
      if (region.metadata_json.empty()) return;
      Value metadata = state::parse_json_object(region.metadata_json, limits);
      if (region.name == state::kBrainRegion) state::put_connections(metadata, std::move(told));
      state::rename_sources(metadata,
                            [&](const std::string& name) { return own_name(name).value_or(name); });
      region.metadata_json = to_json(metadata);
    });
  }
  if (!has_own && state::tells(told)) copy.add_region(region_of_connections(std::move(told)));
  for (const std::uint32_t i : connections) copy.copy_connection(reader.connection(i));
}

}  // namespace

void merge_brains(const std::vector<Reader>& inputs, const path& output,
                  const MergeOptions& merging, const ConvertOptions& options,
                  ConvertResult& result) {
  const ReadLimits& limits = options.chain.read.input.limits;
  if (merging.prefixes.size() != inputs.size()) {
    fail_argument(ErrorCode::bad_argument, "prefixes", std::to_string(merging.prefixes.size()),
                  fmt::format("{}, one for each input", inputs.size()));
  }
  if (merging.preference.kind != MergePreference::Kind::none)
    fail_argument(ErrorCode::bad_argument, "preference", "one", "none beside prefixes");
  state::check_prefixes(merging.prefixes);
  state::EnsembleMetadata metadata(
      checkpoint::completed_metadata(given_metadata(merging.metadata_json, limits), options.save));
  std::vector<AddedBrain> brains;
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const AddedBrain& brain = brains.emplace_back(inputs[i], merging.prefixes[i], limits);
    state::EnsembleBrain told = brain.told();
    steps = std::max(steps, told.training_steps);
    metadata.add(std::move(told));
  }

  ThaliaCopy copy(output, options, result);
  copy.set_metadata(to_json(metadata.take()));
  copy.set_training_steps(steps);
  std::vector<Value> connections;
  for (const AddedBrain& brain : brains) brain.copy(copy, connections);
  if (state::tells(connections)) copy.add_region(region_of_connections(std::move(connections)));
  copy.finish();
}

}  // namespace thalia::formats

namespace thalia {

ConvertResult extract_brain(const std::filesystem::path& named, std::string_view prefix,
                            const std::filesystem::path& output, const ConvertOptions& options) {
  const Stopwatch watch;
  ConvertResult result{.output = output};
  const io::InputFile input(find_model(named));
  formats::check_not_read(input, output, options.save.output, formats::source_options(options),
                          formats::thalia_format(input, options.chain.read.input.access));
  const formats::ResolvedInput resolved = formats::resolved_for(input, output, options);
  const Reader& reader = resolved.reader;
  const ReadLimits& limits = options.chain.read.input.limits;
  with_path(named.native(), [&] {
    const state::EnsembleBrain brain =
        state::brain_in_ensemble(formats::metadata_of(reader, limits), prefix);
    formats::ThaliaCopy copy(output, options, result);
    if (brain.metadata.size() != 0) copy.set_metadata(to_json(brain.metadata));
    copy.set_training_steps(brain.training_steps);
    formats::copy_brain(reader, brain, copy, limits);
    copy.finish();
  });
  result.input_bytes = resolved.copied_bytes != 0 ? resolved.copied_bytes : reader.file_bytes();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
