// Growth of one region inside a file, without loading the rest. The old region stays where it is,
// the grown one is appended, and one commit switches to it: anybody who reads meanwhile sees the
// old state, and an error before the commit leaves the file as it was. The appender holds the
// file's lock from its construction on, which is why it is made before the reader. Payloads are
// borrowed by the appender until commit(): kept_ owns them, in a deque so that they do not move.

#include "thalia/state/growth.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "state/brain/axes.h"
#include "state/brain/stored_region.h"
#include "state/brain/tensor_paths.h"
#include "state/growth/record.h"
#include "state/growth/region.h"
#include "state/value/value_json.h"
#include "thalia/reader.h"
#include "thalia/state/metadata.h"

namespace thalia {
namespace {

using state::Ends;

// Which codec the region was compressed with, taken from its floats: what a codec for floats does
// not suit went to zstd, which has a smaller code, and so the largest code is the answer.
Codec codec_of(const Reader& reader, std::string_view region) {
  const RegionView view = reader.region(region);
  auto codec = Codec::none;
  for (std::uint32_t i = 0; i < view.tensor_count(); ++i)
    codec = std::max(codec, view.tensor(i).codecs().back());
  return codec;
}

ReadOptions read_options(const AppendOptions& options) {
  return {.input = options.change.input, .work = options.change.work};
}

// One growth of one file, from the lock to the commit. Used once.
class GrowingFile {
 public:
  GrowingFile(const std::filesystem::path& path, std::string_view region,
              const GrowthOptions& growth, const AppendOptions& options)
      : name_(region),
        growth_(growth),
        options_(with_codec(path, region, options)),
        appender_(path, options_),  // from here on nobody else changes the file
        reader_(Reader::open(path, read_options(options))),
        view_(reader_.region(region)),
        region_(state::load_region(
            view_,
            // Not restored: elements keep the type and the encoding that the file has.
            {{.restore = false,
              .input = {.limits = options.change.input.limits},
              .work = options.change.work},
             reader_.file_bytes()})) {
    if (growth.grow_targets) {
      fail_argument(ErrorCode::bad_argument, "grow_targets", "true",
                    "false: one region of a file grows");
    }
  }

  GrowFileResult grow_output(std::uint32_t n_new) {
    const std::uint64_t old_size = region_.n_neurons;
    GrowthResult growth = state::grow_region_output(region_, name_, n_new, growth_);
    if (growth.nothing_done.empty()) {
      replace_connections(old_size, n_new, growth);
      growth.targets_left = targets();
    }
    return finish(std::move(growth), {});
  }

  GrowFileResult grow_source(std::string_view source, std::uint32_t n_new) {
    const std::uint64_t size = state::require_source(region_, name_, source, growth_);
    return finish(state::grow_region_source(region_, name_, source, size + n_new, growth_), source);
  }

 private:
  static AppendOptions with_codec(const std::filesystem::path& path, std::string_view region,
                                  AppendOptions options) {
    if (!options.compression.codec)
      options.compression.codec = codec_of(Reader::open(path, read_options(options)), region);
    return options;
  }

  GrowFileResult finish(GrowthResult growth, std::string_view source) {
    GrowFileResult result{.growth = std::move(growth)};
    if (!result.growth.nothing_done.empty()) return result;
    replace_region(result);
    appender_.set_metadata(
        append_growth_event(reader_.metadata_json(),
                            state::growth_event(reader_.header().training_steps, name_, source,
                                                result.growth, growth_.reason),
                            options_.change.input.limits));
    result.append = appender_.commit();
    return result;
  }

  Value metadata_of(const RegionView& view) const {
    return view.metadata_json().empty()
               ? Value::object()
               : state::parse_json_object(view.metadata_json(), options_.change.input.limits);
  }

  // Other regions that have inputs from this one, by the directory and their metadata. A region
  // that cannot be read is passed over: its damage is no reason not to grow this one, and is
  // reported to anybody who grows, loads or verifies it.
  std::vector<std::string> targets() const {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < reader_.region_count(); ++i) {
      const RegionView view = reader_.region(i);
      try {
        if (view.name() != name_ && takes_inputs(view)) names.emplace_back(view.name());
      } catch (const Error&) {
      }
    }
    return names;
  }

  bool takes_inputs(const RegionView& view) const {
    BrainRegion region{.n_neurons = view.n_neurons(), .metadata = metadata_of(view)};
    const state::RegionAxes axes(view.name(), region);
    bool found = false;
    state::for_each_placed(
        view, region.metadata, Value::object(),
        [&](const state::PlacedTensor& placed, const TensorView& tensor) {
          found = found || axes.source(placed.path, tensor.shape(), name_).any();
        },
        options_.change.input.limits);
    return found;
  }

  // Writes the region anew. Its texts stay byte for byte, but for counts in the config; its tensors
  // keep their names, roles and order. Those that have not grown are taken over as they are stored.
  void replace_region(GrowFileResult& result) {
    const RegionId id = appender_.replace_region({
        .name = name_,
        .config_json = config_json(),
        .metadata_json = metadata_json(),
        .n_neurons = region_.n_neurons,
        .n_inputs = region_.n_inputs,
        .neuron_type = region_.neuron_type,
        .homeostatic_updated = region_.homeostatic_updated,
    });
    // Looked up by name, since the tree has an order of its own.
    std::unordered_map<std::string_view, const Value*> grown;
    std::unordered_map<std::string_view, GrownTensor*> by_path;
    for (GrownTensor& tensor : result.growth.tensors) {
      if (tensor.region == name_) by_path.emplace(tensor.path, &tensor);
    }
    state::for_each_placed(
        view_, metadata_of(view_), region_.state,
        [&](const state::PlacedTensor& placed, const TensorView&) {
          grown.emplace(placed.name, placed.found);
          const auto changed = by_path.find(placed.path);
          if (changed != by_path.end()) changed->second->name = placed.name;
        },
        options_.change.input.limits);
    for (std::uint32_t i = 0; i < view_.tensor_count(); ++i) {
      const TensorView view = view_.tensor(i);
      const Value* found = grown.at(view.name());
      // A scalar is a number in the state and a tensor in the file; it does not grow.
      const bool has_grown =
          found != nullptr && found->is_tensor() && found->as_tensor().shape() != view.shape();
      if (!has_grown) {
        appender_.copy_tensor(id, view_, i);
        continue;
      }
      add_tensor(id, std::string(view.name()), view.role(), found->as_tensor());
      if (view.encoding() == Encoding::quantized) result.restored.emplace_back(view.name());
    }
  }

  void add_tensor(RegionId id, const std::string& name, Role role, const Tensor& tensor) {
    const Tensor& kept = kept_.emplace_back(tensor);
    appender_.add_tensor(id, TensorSpec::of(name, kept.layout(), role), kept.bytes());
  }

  // The config in the tree of the metadata, where it holds what a region's config cannot, as a
  // tensor or a dataclass of Python; nullptr if the region has it in its place.
  static Value* config_in_tree(Value& metadata) {
    Value* const tree = metadata.find(state::kTreeMember);
    Value* const components = tree == nullptr ? nullptr : tree->find("components");
    Value* const config = components == nullptr ? nullptr : components->find(component::kConfig);
    if (config == nullptr || !config->is_object()) return nullptr;
    const Value* const type = config->find("_type");
    return type != nullptr && *type == Value("config") ? nullptr : config;
  }

  std::string metadata_json() const {
    Value metadata = metadata_of(view_);
    Value* const config = config_in_tree(metadata);
    if (config == nullptr) return std::string(view_.metadata_json());
    const Value before = *config;
    state::update_config(*config, {view_.n_neurons(), view_.n_inputs()},
                         {region_.n_neurons, region_.n_inputs});
    return *config == before ? std::string(view_.metadata_json()) : to_json(metadata);
  }

  std::string config_json() const {
    const std::string_view text = view_.config_json();
    const Value* config = region_.find(component::kConfig);
    Value metadata = metadata_of(view_);
    if (config == nullptr || config_in_tree(metadata) != nullptr) return std::string(text);
    // Compared as values, so that an unchanged config keeps its text, spaces included.
    return state::parse_json_object(text, options_.change.input.limits) == *config
               ? std::string(text)
               : to_json(*config);
  }

  // Connections are one section of the file. If any of them grows, all are written again, in the
  // order that they had.
  void replace_connections(std::uint64_t old_size, std::uint32_t n_new, GrowthResult& growth) {
    // The section holds names cut to a fixed length (docs/format/format.md, "Short names").
    std::map<std::string, std::string> full_names;
    for (std::uint32_t i = 0; i < reader_.region_count(); ++i) {
      const std::string name(reader_.region(i).name());
      full_names.emplace(container::short_name_string(name), name);
    }
    std::vector<BrainConnection> connections;
    bool is_touched = false;
    for (std::uint32_t i = 0; i < reader_.connection_count(); ++i) {
      const ConnectionView view = reader_.connection(i);
      BrainConnection connection{full_name(full_names, view.source),
                                 full_name(full_names, view.target),
                                 Tensor::from(view.weights, options_.change.input.limits)};
      if (view.delays) connection.delays = Tensor::from(*view.delays, options_.change.input.limits);
      const bool from_here = connection.source == name_;
      const bool to_here = connection.target == name_;
      if (from_here || to_here) {
        const Ends old_ends{from_here ? old_size : neurons_of(connection.source),
                            to_here ? old_size : neurons_of(connection.target)};
        const Ends new_ends{old_ends.source + (from_here ? n_new : 0),
                            old_ends.target + (to_here ? n_new : 0)};
        connection = state::grown_connection(connection, old_ends, new_ends, growth_, growth);
        is_touched = true;
      }
      connections.push_back(std::move(connection));
    }
    if (!is_touched) return;
    for (const auto& one : connections) appender_.remove_connection(one.source, one.target);
    for (const auto& one : connections) add_connection(one);
  }

  static std::string full_name(const std::map<std::string, std::string>& names,
                               const std::string& short_name) {
    const auto found = names.find(short_name);
    if (found != names.end()) return found->second;
    throw FormatError(ErrorCode::inconsistent, "a connection names no region of the file",
                      {.section = "connectivity", .value = printable(short_name)});
  }

  std::uint64_t neurons_of(const std::string& region) const {
    return reader_.region(region).n_neurons();
  }

  void add_connection(const BrainConnection& connection) {
    const ConnectionId id = appender_.add_connection(connection.source, connection.target);
    const Tensor& weights = kept_.emplace_back(connection.weights);
    appender_.add_connection_weights(id, TensorSpec::of({}, weights.layout()), weights.bytes());
    if (!connection.delays) return;
    const Tensor& delays = kept_.emplace_back(*connection.delays);
    appender_.add_connection_delays(id, TensorSpec::of({}, delays.layout(), Role::other),
                                    delays.bytes());
  }

  std::string name_;
  const GrowthOptions& growth_;
  AppendOptions options_;
  std::deque<Tensor> kept_;  ///< payloads are borrowed until commit
  Appender appender_;
  Reader reader_;
  RegionView view_;
  BrainRegion region_;
};

}  // namespace

GrowFileResult grow_file(const std::filesystem::path& path, std::string_view region,
                         std::uint32_t n_new, const GrowthOptions& growth,
                         const AppendOptions& options) {
  return with_path(path.native(),
                   [&] { return GrowingFile(path, region, growth, options).grow_output(n_new); });
}

GrowFileResult grow_file_source(const std::filesystem::path& path, std::string_view region,
                                std::string_view source, std::uint32_t n_new,
                                const GrowthOptions& growth, const AppendOptions& options) {
  return with_path(path.native(), [&] {
    return GrowingFile(path, region, growth, options).grow_source(source, n_new);
  });
}

}  // namespace thalia
