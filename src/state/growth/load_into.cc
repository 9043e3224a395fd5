// Loads an older, smaller state into a larger model: old elements go to the corner of each tensor
// of the target, what is beyond keeps the target's initial numbers. Nothing is dropped silently:
// each tensor of either side that found no counterpart is named in the result. If the older
// state is the larger one, the target grows by the rules of growth (rule.cc) or the call is
// refused. Loading works on a copy, and the target is replaced only at the end.

#include "thalia/state/growth.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/growth/random.h"
#include "state/growth/record.h"
#include "state/growth/rule.h"
#include "state/tensor/corner.h"
#include "state/value/member_places.h"
#include "state/value/python_value.h"

namespace thalia {
namespace {

Shape larger_of(const Shape& a, const Shape& b) {
  std::vector<std::uint64_t> extents(a.extents().begin(), a.extents().end());
  for (unsigned d = 0; d < extents.size(); ++d) extents[d] = std::max(extents[d], b[d]);
  return Shape(std::span<const std::uint64_t>(extents));
}

// Fills trees of the target from trees of the older state, and counts.
class Loading {
 public:
  // The new elements of a tensor of the target that has to grow for the older one.
  using Fill = std::function<state::ElementFill(const std::string& path, const Tensor& tensor,
                                                const Shape& shape)>;

  explicit Loading(const LoadIntoOptions& options) : options_(options) {
    state::check_growth_options(options.growth);
  }

  // Loads one state. Its component `config` describes the target, and so only tensors are taken
  // from the older one.
  void load_state(Value& target, const Value& older, const std::string& path, const Fill& fill) {
    config_path_ = path + '.' + std::string(component::kConfig);
    load_tree(target, older, path, fill);
  }

  void load_tree(Value& target, const Value& older, const std::string& path, const Fill& fill) {
    if (target.is_tensor() && older.is_tensor()) {
      load_tensor(target.as_tensor(), older.as_tensor(), path, fill);
    } else if (target.is_object() && older.is_object()) {
      load_object(target, older, path, fill);
    } else if (target.is_array() && older.is_array() && target.size() == older.size()) {
      for (std::size_t i = 0; i < target.size(); ++i) {
        load_tree(target.elements()[i], older.elements()[i], fmt::format("{}[{}]", path, i), fill);
      }
    } else if (target.is_tensor() || older.is_tensor()) {
      result_.left_out.push_back(path);
      if (target.is_tensor()) result_.kept.push_back(path);
    } else if (!is_config(path)) {
      target = older;
      ++result_.values_copied;
    }
  }

  void load_tensor(Tensor& target, const Tensor& older, const std::string& path, const Fill& fill) {
    require_alike(target, older, path);
    // At least one extent is larger in the older state. The target first grows to hold both.
    if (!state::fits_into(older.shape(), target.shape())) {
      if (options_.on_larger == OnLarger::refuse) {
        throw ShapeMismatchError(target.shape(), older.shape(),
                                 "the older state has more than the target",
                                 {.tensor = printable(path),
                                  .bound = "nowhere larger than " + target.shape().to_string()});
      }
      const Shape shape = larger_of(target.shape(), older.shape());
      target = state::grown(target, shape, fill(path, target, shape));
    }
    const std::uint64_t count = older.element_count();
    result_.elements_copied += count;
    result_.elements_kept += target.element_count() - count;
    const bool is_whole = older.shape() == target.shape();
    ++(is_whole ? result_.tensors_whole : result_.tensors_in_corner);
    target = state::with_corner(target, older);
  }

  [[noreturn]] static void refuse(ErrorCode code, const std::string& path, std::string value,
                                  std::string bound, std::string message) {
    throw UsageError(
        code, std::move(message),
        {.tensor = printable(path), .value = std::move(value), .bound = std::move(bound)});
  }

  LoadIntoResult& result() { return result_; }

 private:
  void load_object(Value& target, const Value& older, const std::string& path, const Fill& fill) {
    // Indexed by name, so that objects of many members do not take quadratic time. Where a name
    // occurs twice, its first place counts.
    const auto places = state::member_places(older);
    const Value* const python = state::python_value(older);
    std::unordered_map<std::size_t, std::size_t> counterparts;  // from places in `older`
    for (std::size_t i = 0; i < target.size(); ++i) {
      const auto found = places.find(target.members()[i].name);
      if (found != places.end()) counterparts.emplace(found->second, i);
    }
    for (const auto& [name, value] : older.members()) {
      const auto counterpart = counterparts.find(places.at(name));
      const std::string below = &value == python ? path : path + '.' + name;
      if (counterpart != counterparts.end()) {
        load_tree(target.members()[counterpart->second].value, value, below, fill);
      } else if (value.has_tensors()) {
        result_.left_out.push_back(below);
      } else if (!is_config(below)) {
        // Remembered, so that a second member of this name does not add another.
        counterparts.emplace(places.at(name), target.size());
        target.add(name, value);
        ++result_.values_copied;
      }
    }
    for (const Value::Member& member : std::as_const(target).members()) {
      if (places.contains(member.name)) continue;
      for_each_tensor(member.value, [&](const std::string& tensor, const Tensor&) {
        result_.kept.push_back(path + '.' + member.name + (tensor.empty() ? "" : "." + tensor));
      });
    }
  }

  bool is_config(const std::string& path) const { return path.starts_with(config_path_ + '.'); }

  static void require_alike(const Tensor& target, const Tensor& older, const std::string& path) {
    if (target.dtype() != older.dtype()) {
      refuse(ErrorCode::dtype_mismatch, path, std::string(dtype_name(older.dtype())),
             std::string(dtype_name(target.dtype())), "the tensor has another element type");
    }
    if (target.shape().rank() != older.shape().rank()) {
      throw ShapeMismatchError(target.shape(), older.shape(),
                               "the tensor has another number of dimensions",
                               {.tensor = printable(path)});
    }
  }

  const LoadIntoOptions& options_;
  LoadIntoResult result_;
  std::string config_path_;
};

void load_region(BrainRegion& target, const BrainRegion& older, const std::string& name,
                 const std::string& path, const LoadIntoOptions& options, Loading& loading) {
  // Its tensors have no axis that could be told to count neurons.
  if (target.n_neurons == 0 && older.n_neurons != 0) {
    throw UsageError(ErrorCode::wrong_state, "the target has no neurons to load into",
                     {.region = printable(name),
                      .value = "0 neurons",
                      .bound = fmt::format("{} or more", older.n_neurons)});
  }
  // Rules look at the region as it was before any of its tensors grew.
  const BrainRegion before = target;
  const auto fill = [&](const std::string& full, const Tensor& tensor, const Shape& shape) {
    return state::fill_of(name, before, std::string_view(full).substr(path.size() + 1), tensor,
                          shape, options.growth);
  };
  loading.load_state(target.state, older.state, path, fill);
  if (older.n_neurons > target.n_neurons || older.n_inputs > target.n_inputs)
    loading.result().regions_grown.push_back(name);
  target.n_neurons = std::max(target.n_neurons, older.n_neurons);
  target.n_inputs = std::max(target.n_inputs, older.n_inputs);
  target.homeostatic_updated = older.homeostatic_updated;
}

// Adds an event of growth for each region whose number of neurons differs from the older state's.
void load_set(RegionSet& target, const RegionSet& older, const std::string& path,
              const LoadIntoOptions& options, Loading& loading, Value& metadata,
              std::uint64_t step) {
  for (const std::string& name : older.names()) {
    BrainRegion* place = target.find(name);
    if (place == nullptr) {
      loading.result().left_out.push_back(path + '.' + name);
      continue;
    }
    const BrainRegion& from = older.at(name);
    load_region(*place, from, name, path + '.' + name, options, loading);
    if (place->n_neurons == from.n_neurons) continue;
    GrowthResult growth;
    growth.neurons_added = place->n_neurons - from.n_neurons;
    growth.n_neurons = place->n_neurons;
    GrowthEvent event = state::growth_event(step, name, {}, growth, options.growth.reason);
    event.synapses_added.reset();  // those of the target, of which nothing is known here
    state::append_event(metadata, event);
  }
  for (const std::string& name : target.names()) {
    if (older.contains(name)) continue;
    for_each_tensor(std::as_const(target).at(name).state,
                    [&](const std::string& tensor, const Tensor&) {
                      loading.result().kept.push_back(path + '.' + name + '.' + tensor);
                    });
  }
}

void set_members(Value& target, const Value& older) {
  target.members().reserve(target.size() + older.size());
  auto places = state::member_places(target);
  for (const auto& [name, value] : older.members()) {
    const auto [place, is_new] = places.try_emplace(name, target.size());
    if (is_new) {
      target.add(name, value);
    } else {
      target.members()[place->second].value = value;
    }
  }
}

void load_connections(Connectivity& target, const Connectivity& older,
                      const LoadIntoOptions& options, Loading& loading) {
  for (const BrainConnection& from : older.all()) {
    const std::string name = from.source + "->" + from.target;
    const std::string path = "connectivity." + name;
    BrainConnection* place = target.find(from.source, from.target);
    if (place == nullptr) {
      loading.result().left_out.push_back(path);
      continue;
    }
    const auto drawn = [&](const std::string&, const Tensor& weights, const Shape& shape) {
      return state::connection_fill(name, weights, shape, options.growth);
    };
    // New delays are the mean of the old: a delay of zero would be no delay at all.
    const auto mean = [](const std::string&, const Tensor& tensor, const Shape&) {
      return state::constant_fill(state::mean_of(tensor));
    };
    loading.load_tensor(place->weights, from.weights, path + ".weights", drawn);
    if (from.delays && place->delays) {
      loading.load_tensor(*place->delays, *from.delays, path + ".delays", mean);
    } else if (from.delays || place->delays) {
      (from.delays ? loading.result().left_out : loading.result().kept).push_back(path + ".delays");
    }
  }
  for (const BrainConnection& own : std::as_const(target).all()) {
    if (older.find(own.source, own.target) == nullptr)
      loading.result().kept.push_back("connectivity." + own.source + "->" + own.target);
  }
}

}  // namespace

LoadIntoResult load_into(BrainState& target, const BrainState& older,
                         const LoadIntoOptions& options) {
  BrainState loaded = target;
  Loading loading(options);
  set_members(loaded.metadata, older.metadata);
  load_set(loaded.regions, older.regions, "regions", options, loading, loaded.metadata,
           older.training_steps);
  load_set(loaded.pathways, older.pathways, "pathways", options, loading, loaded.metadata,
           older.training_steps);
  load_connections(loaded.connectivity, older.connectivity, options, loading);
  loading.load_state(
      loaded.state, older.state, "state",
      // The brain-wide state has no neurons and no rule: what is new in it is zero.
      [](const std::string&, const Tensor&, const Shape&) { return state::ElementFill(); });
  loaded.training_steps = older.training_steps;
  target = std::move(loaded);
  return loading.result();
}

}  // namespace thalia
