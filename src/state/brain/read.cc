// A brain from a file: docs/format/states.md, "States". A lazy read loads only the brain-wide
// region and those that were asked for; the others and the connections keep the reader, and with it
// the mapped file, until they are used. Regions load in parallel, each into a place of its own, and
// are added in the file's order. Where only some regions are wanted, or one brain of several,
// connections that lead elsewhere are left out; those of the brain can be named.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "state/brain/axes.h"
#include "state/brain/ensemble.h"
#include "state/brain/stored_brain.h"
#include "state/value/tree_json.h"
#include "state/value/value_json.h"

namespace thalia::state {
namespace {

class Reading {
 public:
  Reading(const Reader& reader, const BrainReadOptions& options)
      : reader_(reader),
        options_(options),
        context_(options.state, reader.file_bytes(), options.fetch),
        wanted_(names_wanted()) {
    context_.read_tensors = options.read_tensors;
  }

  BrainState run() {
    BrainState brain;
    brain.training_steps = reader_.header().training_steps;
    if (!options_.prefix.empty()) {
      read_told_brain(brain);
    } else if (!reader_.metadata_json().empty()) {
      brain.metadata = read_metadata(reader_.metadata_json(), options_.state.input.limits);
    }
    // Before any tensor is read: it decides what becomes of f16 and bf16.
    context_.policy_was_applied = has_narrowing_policy(brain.metadata);
    Value reported_connections;
    add_regions(brain, reported_connections);
    brain.connectivity = Connectivity(
        // Everything by value: the loader outlives this object.
        [reader = reader_, wanted = wanted_, reported_connections = std::move(reported_connections),
         context = context_, prefix = options_.prefix] {
          return read_connections(reader, wanted, reported_connections, context, prefix);
        });
    if (!options_.lazy) brain.connectivity.all();
    if (options_.connections_left_out != nullptr && !wanted_.everything) name_left_out();
    return brain;
  }

 private:
  // The name that a region of the file has in the state; nullopt if it is of another brain.
  static std::optional<std::string> own_name(const std::string& prefix, std::string_view name) {
    return prefix.empty() ? std::string(name) : name_in_brain(prefix, name);
  }

  // What the metadata of an ensemble say of the one that is read.
  void read_told_brain(BrainState& brain) const {
    const ReadLimits& limits = options_.state.input.limits;
    EnsembleBrain told = with_path(reader_.path().native(), [&] {
      const std::string_view json = reader_.metadata_json();
      return brain_in_ensemble(json.empty() ? Value::object() : parse_json_object(json, limits),
                               options_.prefix);
    });
    brain.training_steps = told.training_steps;
    brain.metadata = read_tree(std::move(told.metadata));
  }

  // With axes that name the regions as the state does.
  static BrainRegion load_own_region(const RegionView& view, const LoadContext& context,
                                     const std::string& prefix) {
    BrainRegion region = load_region(view, context);
    if (!prefix.empty()) {
      rename_sources(region.metadata, [&](const std::string& name) {
        return name_in_brain(prefix, name).value_or(name);
      });
    }
    return region;
  }

  // Which regions of the file belong to the state, and which of them are read now. All belong to it
  // if it is lazy.
  struct Wanted {
    std::vector<std::uint32_t> regions;
    std::unordered_set<std::string> at_once;  ///< read now
    bool everything = true;
  };

  Wanted names_wanted() const {
    Wanted wanted;
    for (const std::string& own : options_.regions) {
      const std::string& prefix = options_.prefix;
      std::string name = prefix.empty() ? own : name_in_ensemble(prefix, own);
      reader_.region(name);  // throws if there is none
      wanted.at_once.insert(std::move(name));
    }
    wanted.everything = options_.lazy || options_.regions.empty();
    for (std::uint32_t i = 0; i < reader_.region_count(); ++i) {
      const std::string name(reader_.region(i).name());
      const auto own = own_name(options_.prefix, name);
      if (own && (wanted.everything || *own == kBrainRegion || wanted.at_once.contains(name)))
        wanted.regions.push_back(i);
    }
    return wanted;
  }

  bool is_read_now(std::string_view name) const {
    if (!options_.lazy) return true;
    return own_name(options_.prefix, name) == kBrainRegion ||
           wanted_.at_once.contains(std::string(name));
  }

  // Names the connections that have an end which was not read.
  void name_left_out() const {
    std::map<std::string, std::string> all_names;
    std::unordered_set<std::string> there;
    for (std::uint32_t i = 0; i < reader_.region_count(); ++i) {
      const std::string_view name = reader_.region(i).name();
      if (auto own = own_name(options_.prefix, name))
        all_names.emplace(container::short_name_string(name), *std::move(own));
    }
    for (const std::uint32_t i : wanted_.regions)
      there.insert(container::short_name_string(reader_.region(i).name()));
    const auto full = [&](const std::string& name) {
      const auto found = all_names.find(name);
      return found == all_names.end() ? name : found->second;
    };
    const auto is_of_another_brain = [&](const ConnectionView& view) {
      return !options_.prefix.empty() &&
             !(all_names.contains(view.source) && all_names.contains(view.target));
    };
    for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
      const ConnectionView view = reader_.connection(i);
      if (there.contains(view.source) && there.contains(view.target)) continue;
      if (is_of_another_brain(view)) continue;
      options_.connections_left_out->push_back(full(view.source) + "->" + full(view.target));
    }
  }

  // `reported_connections` gets what the metadata of the brain-wide region says of the connections'
  // matrices.
  void add_regions(BrainState& brain, Value& reported_connections) const {
    std::vector<BrainRegion> loaded(wanted_.regions.size());
    parallel_for(wanted_.regions.size(), options_.state.work.threads, [&](std::size_t i) {
      const RegionView view = reader_.region(wanted_.regions[i]);
      if (is_read_now(view.name())) loaded[i] = load_own_region(view, context_, options_.prefix);
    });
    for (std::size_t i = 0; i < loaded.size(); ++i) {
      const RegionView view = reader_.region(wanted_.regions[i]);
      const std::string name = *own_name(options_.prefix, view.name());
      if (name == kBrainRegion) {
        brain.state = std::move(loaded[i].state);
        if (Value* found = loaded[i].metadata.find(kConnectionsMember))
          reported_connections = std::move(*found);
        loaded[i].metadata.erase(kConnectionsMember);
        brain.state_metadata = std::move(loaded[i].metadata);
        continue;
      }
      const bool is_pathway = name.starts_with(kPathwayPrefix);
      RegionSet& set = is_pathway ? brain.pathways : brain.regions;
      std::string own = is_pathway ? name.substr(kPathwayPrefix.size()) : name;
      if (is_read_now(view.name())) {
        set.add(std::move(own), std::move(loaded[i]));
      } else {
        set.add_lazy(std::move(own), [view, context = context_, prefix = options_.prefix] {
          return load_own_region(view, context, prefix);
        });
      }
    }
    if (!options_.prefix.empty()) reported_connections = connections_of_ensemble();
  }

  // Those of all brains: they are told by the numbers of the file's connections.
  Value connections_of_ensemble() const {
    const auto own = reader_.find_region(kBrainRegion);
    if (!own || own->metadata_json().empty()) return {};
    Value metadata = parse_json_object(own->metadata_json(), options_.state.input.limits);
    Value* found = metadata.find(kConnectionsMember);
    return found == nullptr ? Value() : std::move(*found);
  }

  static std::vector<BrainConnection> read_connections(const Reader& reader, const Wanted& wanted,
                                                       const Value& reported_connections,
                                                       const LoadContext& context,
                                                       const std::string& prefix) {
    std::map<std::string, std::string> full_names;
    for (const std::uint32_t i : wanted.regions) {
      const std::string_view name = reader.region(i).name();
      // Connections hold short names, 32 bytes, which this maps back.
      full_names.emplace(container::short_name_string(name), *own_name(prefix, name));
    }
    std::vector<BrainConnection> connections;
    for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
      const ConnectionView view = reader.connection(i);
      const auto source = full_names.find(view.source);
      const auto target = full_names.find(view.target);
      if (source == full_names.end() || target == full_names.end()) {
        // The other end was not asked for, or is of another brain. In a whole file it has to exist.
        if (!wanted.everything || !prefix.empty()) continue;
        throw FormatError(ErrorCode::inconsistent, "a connection names no region of the file",
                          {.section = "connectivity",
                           .field = "source_region",
                           .value = printable(view.source + " to " + view.target)});
      }
      const Value none;
      // What the matrix was before it was stored, by the number of its connection; null if
      // nothing is told.
      const auto reported = [&](std::string_view member) -> const Value& {
        if (!reported_connections.is_array() || i >= reported_connections.size()) return none;
        const Value* found = reported_connections.elements()[i].find(member);
        return found == nullptr ? none : *found;
      };
      BrainConnection connection{
          .source = source->second,
          .target = target->second,
          .weights = load_tensor(view.weights, reported("weights"), context)};
      if (view.delays) connection.delays = load_tensor(*view.delays, reported("delays"), context);
      connections.push_back(std::move(connection));
    }
    return connections;
  }

  const Reader& reader_;
  const BrainReadOptions& options_;
  LoadContext context_;
  Wanted wanted_;
};

}  // namespace

Value read_metadata(std::string_view json, const ReadLimits& limits) {
  return read_tree(parse_json_object(json, limits));
}

BrainState read_brain(const Reader& reader, const BrainReadOptions& options) {
  return Reading(reader, options).run();
}

}  // namespace thalia::state
