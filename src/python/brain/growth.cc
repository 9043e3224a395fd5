// Growth, pruning and capacity of a brain's state, and of one region of a file. Python builds the
// state, or has a file's loaded; afterwards it takes from it what has changed, to put that where
// the old was. Nothing of Python changes here, so that an error leaves all as it was.
#include "thalia/state/growth.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/brain/brain.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/append.h"
#include "thalia/state/checkpoint.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using AnyList = nb::typed<nb::list, nb::any>;

// A pruning with its log as objects of Python: a tree that a state may hold.
struct Pruning : PruneResult {
  nb::object tree = nb::none();
};

// What makes the log's tensors arrays.
class Decode : public nb::callable {
 public:
  using nb::callable::callable;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name =
      nb::detail::const_name("collections.abc.Callable[[typing.Any], typing.Any]");
};

Pruning pruning(PruneResult result, const Decode& decode) {
  nb::object tree = decode(object_of(std::exchange(result.log, {})));
  return {std::move(result), std::move(tree)};
}

template <typename Result>
Result on_state(PyBrain& self, const std::function<Result(BrainState&)>& work) {
  const auto use = self.use();
  return interruptible([&](const std::stop_token&) { return work(use->state); });
}

WeightInit init_named(const std::string& name) {
  if (const auto init = weight_init_from_name(name)) return *init;
  fail_choice("initialization", name, "sparse_random, xavier, uniform");
}

GrowthOptions growth_options(const std::string& initialization, double sparsity,
                             std::optional<double> scale, std::uint64_t seed,
                             std::string population, TensorAxes axes, bool grow_targets,
                             std::string reason) {
  return {.initialization = init_named(initialization),
          .sparsity = sparsity,
          .scale = scale,
          .seed = seed,
          .population = std::move(population),
          .axes = std::move(axes),
          .grow_targets = grow_targets,
          .reason = std::move(reason)};
}

PruneGuard prune_guard(bool task_is_changing, std::vector<std::string> protected_names,
                       std::string reason) {
  return {.task_is_changing = task_is_changing,
          .protected_names = std::move(protected_names),
          .reason = std::move(reason)};
}

PruneOptions prune_options(double threshold, std::uint64_t min_age, std::uint64_t window,
                           double importance_threshold, const PruneGuard& guard) {
  return {.threshold = threshold,
          .min_age_steps = min_age,
          .importance_window_steps = window,
          .importance_threshold = importance_threshold,
          .guard = guard};
}

RemoveOptions remove_options(std::uint64_t min_silent, double strong_weight,
                             std::uint64_t task_window,
                             std::vector<std::uint64_t> protected_neurons, TensorAxes axes,
                             const PruneGuard& guard) {
  return {.min_silent_steps = min_silent,
          .strong_weight = strong_weight,
          .task_window_steps = task_window,
          .protected_neurons = std::move(protected_neurons),
          .axes = std::move(axes),
          .guard = guard};
}

GrowthResult run_grow_output(PyBrain& self, const std::string& region, std::uint32_t n_new,
                             const GrowthOptions& options) {
  return on_state<GrowthResult>(
      self, [&](BrainState& state) { return grow_output(state, region, n_new, options); });
}

GrowthResult run_grow_source(PyBrain& self, const std::string& region, const std::string& source,
                             std::uint64_t new_size, const GrowthOptions& options) {
  return on_state<GrowthResult>(self, [&](BrainState& state) {
    return grow_source(state, region, source, new_size, options);
  });
}

Pruning run_prune_synapses(PyBrain& self, const std::string& region, const PruneOptions& options,
                           const Decode& decode) {
  return pruning(
      on_state<PruneResult>(
          self, [&](BrainState& state) { return prune_synapses(state, region, options); }),
      decode);
}

Pruning run_remove_neurons(PyBrain& self, const std::string& region, std::uint64_t n,
                           const RemoveOptions& options, const Decode& decode) {
  return pruning(
      on_state<PruneResult>(
          self, [&](BrainState& state) { return remove_neurons(state, region, n, options); }),
      decode);
}

void run_undo_pruning(PyBrain& self, nb::handle log) {
  std::vector<HeldBuffer> held;
  const Value tree = value_of(log, held);
  const auto use = self.use();
  interruptible([&](const std::stop_token&) {
    undo_pruning(use->state, tree);
    return true;
  });
  // Elements that were put back may lie in the log's arrays.
  std::move(held.begin(), held.end(), std::back_inserter(use->held));
}

CapacityMetrics run_capacity_metrics(PyBrain& self, const std::string& region) {
  return on_state<CapacityMetrics>(
      self, [&](BrainState& state) { return capacity_metrics(state, region); });
}

nb::typed<nb::dict, std::string, CapacityMetrics> run_check_growth_needs(PyBrain& self) {
  nb::dict out;
  for (GrowthNeed& need : on_state<std::vector<GrowthNeed>>(
           self, [](BrainState& state) { return check_growth_needs(state); }))
    out[text_object(need.region)] = std::move(need.metrics);
  return out;
}

nb::typed<nb::dict, std::string, GrowthResult> run_auto_grow(PyBrain& self, double threshold,
                                                             const GrowthOptions& options) {
  nb::dict out;
  for (AutoGrowth& growth : on_state<std::vector<AutoGrowth>>(
           self, [&](BrainState& state) { return auto_grow(state, threshold, options); }))
    out[text_object(growth.region)] = std::move(growth.result);
  return out;
}

nb::typed<nb::dict, std::string, Pruning> run_auto_prune(PyBrain& self, bool enable,
                                                         const std::string& safety_level,
                                                         const PruneOptions& options,
                                                         const Decode& decode) {
  const AutoPruneOptions all{
      .enable = enable,
      .safety_level = chosen<PruneSafety>(
          "safety_level", safety_level,
          {{"conservative", PruneSafety::conservative}, {"aggressive", PruneSafety::aggressive}}),
      .prune = options};
  nb::dict out;
  for (AutoPruning& one : on_state<std::vector<AutoPruning>>(
           self, [&](BrainState& state) { return auto_prune(state, all); }))
    out[text_object(one.region)] = pruning(std::move(one.result), decode);
  return out;
}

LoadIntoResult run_load_into(PyBrain& self, PyBrain& older, const std::string& on_larger,
                             const GrowthOptions& growth) {
  const LoadIntoOptions options{
      .on_larger = chosen<OnLarger>("on_larger", on_larger,
                                    {{"refuse", OnLarger::refuse}, {"grow", OnLarger::grow}}),
      .growth = growth};
  const auto from = older.use();
  return on_state<LoadIntoResult>(
      self, [&](BrainState& state) { return load_into(state, from->state, options); });
}

// What the state is now. An Ellipsis stands for a tensor that lies where Python has it, unchanged.
class Taken {
 public:
  explicit Taken(OpenBrain&& brain) : brain_(std::move(brain)) {
    for (const HeldBuffer& held : brain_.held) places_.push_back(held.bytes().data());
    std::ranges::sort(places_, std::less<>());
  }

  nb::object tree(const Value& value) const {
    return object_of(value, [&](const Tensor& tensor) { return object(tensor); });
  }
  nb::object object(const Tensor& tensor) const {
    if (std::ranges::binary_search(places_, tensor.bytes().data(), std::less<>()))
      return nb::borrow(Py_Ellipsis);
    return nb::cast(LoadedTensor{tensor});
  }
  // Name, state, n_neurons, n_inputs and when its homeostatic state changed, of each.
  nb::list regions(const RegionSet& set) const {
    nb::list out;
    for (const std::string& name : set.names()) {
      const BrainRegion& region = set.at(name);
      out.append(nb::make_tuple(text_object(name), tree(region.state), region.n_neurons,
                                region.n_inputs, region.homeostatic_updated));
    }
    return out;
  }
  nb::list connections() const {
    nb::list out;
    for (const BrainConnection& one : std::as_const(brain_.state.connectivity).all()) {
      out.append(
          nb::make_tuple(object(one.weights), one.delays ? object(*one.delays) : nb::none()));
    }
    return out;
  }
  const BrainState& state() const { return brain_.state; }

 private:
  OpenBrain brain_;
  std::vector<const std::byte*> places_;
};

void set_metadata(PyBrain& self, const std::string& name, nb::handle value) {
  const auto use = self.use();
  Value& metadata = use->state.metadata;
  if (value.is_none()) {
    metadata.erase(name);
  } else {
    metadata[name] = use->value(value);
  }
}

// Regions, pathways, connections, the brain-wide state, metadata, training steps. The state is
// empty then.
TupleWith<AnyList, AnyList, AnyList, Members, Members, std::uint64_t> take(PyBrain& self) {
  const auto use = self.use();
  const Taken taken(std::exchange(*use, {}));
  const BrainState& state = taken.state();
  return nb::make_tuple(taken.regions(state.regions), taken.regions(state.pathways),
                        taken.connections(), taken.tree(state.state), object_of(state.metadata),
                        state.training_steps);
}

std::unique_ptr<PyBrain> load_state(const Path& path, std::uint64_t max_bytes,
                                    std::vector<Path> search, const std::string& access,
                                    unsigned threads) {
  auto brain = std::make_unique<PyBrain>("the state");
  const auto use = brain->use();
  BrainLoadOptions options{
      .on_warning = [&](const std::string& text) { use->warnings.push_back(text); },
      .chain = chain_options(access, std::move(search), threads),
      .max_file_bytes = max_bytes};
  options.chain.read.input.limits.max_file_bytes = max_bytes;
  interruptible([&](const std::stop_token& stop) {
    options.chain.read.work.cancel = stop;
    use->state = BrainCheckpoint::load(path, options);
    return true;
  });
  return brain;
}

AppendOptions append_options(const std::optional<std::string>& compression,
                             std::optional<int> level, std::optional<std::uint64_t> timestamp,
                             bool wait, const std::string& durability) {
  nb::dict arguments;
  arguments["compression"] = compression;
  arguments["compression_level"] = level;
  arguments["durability"] = durability;
  const SaveOptions save = save_options(arguments);
  AppendOptions options{.compression = fixed_compression(save), .timestamp = timestamp};
  options.change.output = save.output;
  options.change.wait = wait;
  return options;
}

template <typename Grow>
GrowFileResult grown_file(AppendOptions options, const Grow& grow) {
  return interruptible([&](const std::stop_token& stop) {
    options.change.work.cancel = stop;
    return grow(options);
  });
}

GrowFileResult run_grow_file(const Path& path, const std::string& region, std::uint32_t n_new,
                             const GrowthOptions& growth, const AppendOptions& options) {
  return grown_file(options, [&](const AppendOptions& all) {
    return grow_file(path, region, n_new, growth, all);
  });
}

GrowFileResult run_grow_file_source(const Path& path, const std::string& region,
                                    const std::string& source, std::uint32_t n_new,
                                    const GrowthOptions& growth, const AppendOptions& options) {
  return grown_file(options, [&](const AppendOptions& all) {
    return grow_file_source(path, region, source, n_new, growth, all);
  });
}

void bind_growth_options(nb::module_& module) {
  nb::class_<GrowthOptions>(module, "GrowthOptions")
      .def(
          "__init__",
          [](GrowthOptions* self, const std::string& initialization, double sparsity,
             std::optional<double> scale, std::uint64_t seed, std::string population,
             TensorAxes axes, bool grow_targets, std::string reason) {
            new (self) GrowthOptions(growth_options(initialization, sparsity, scale, seed,
                                                    std::move(population), std::move(axes),
                                                    grow_targets, std::move(reason)));
          },
          nb::arg("initialization"), nb::arg("sparsity"), nb::arg("scale").none(), nb::arg("seed"),
          nb::arg("population"), nb::arg("axes"), nb::arg("grow_targets"), nb::arg("reason"));
  nb::class_<PruneGuard>(module, "PruneGuard")
      .def(
          "__init__",
          [](PruneGuard* self, bool task_is_changing, std::vector<std::string> protected_names,
             std::string reason) {
            new (self) PruneGuard(
                prune_guard(task_is_changing, std::move(protected_names), std::move(reason)));
          },
          nb::arg("task_is_changing"), nb::arg("protected_names"), nb::arg("reason"));
  nb::class_<PruneOptions>(module, "PruneOptions")
      .def(
          "__init__",
          [](PruneOptions* self, double threshold, std::uint64_t min_age, std::uint64_t window,
             double importance_threshold, const PruneGuard& guard) {
            new (self) PruneOptions(
                prune_options(threshold, min_age, window, importance_threshold, guard));
          },
          nb::arg("threshold"), nb::arg("min_age"), nb::arg("importance_history_window"),
          nb::arg("importance_threshold"), nb::arg("guard"));
  nb::class_<RemoveOptions>(module, "RemoveOptions")
      .def(
          "__init__",
          [](RemoveOptions* self, std::uint64_t min_silent, double strong_weight,
             std::uint64_t task_window, std::vector<std::uint64_t> protected_neurons,
             TensorAxes axes, const PruneGuard& guard) {
            new (self)
                RemoveOptions(remove_options(min_silent, strong_weight, task_window,
                                             std::move(protected_neurons), std::move(axes), guard));
          },
          nb::arg("min_silent"), nb::arg("strong_weight"), nb::arg("task_window"),
          nb::arg("protected_neurons"), nb::arg("axes"), nb::arg("guard"));
  nb::class_<AppendOptions>(module, "AppendOptions")
      .def(
          "__init__",
          [](AppendOptions* self, const std::optional<std::string>& compression,
             std::optional<int> level, std::optional<std::uint64_t> timestamp, bool wait,
             const std::string& durability) {
            new (self)
                AppendOptions(append_options(compression, level, timestamp, wait, durability));
          },
          nb::arg("compression").none(), nb::arg("compression_level").none(),
          nb::arg("timestamp").none(), nb::arg("wait"), nb::arg("durability"));
}

void bind_growth_results(nb::module_& module) {
  bind_result<GrownTensor>(
      module, "GrownTensor", "A tensor that has grown.",
      field("region", &GrownTensor::region,
            "Or \"pathway:NAME\", or \"SOURCE->TARGET\" of a connection."),
      field("path", &GrownTensor::path,
            "In the region's state; \"weights\" and \"delays\" of a connection."),
      field("old_shape", &GrownTensor::old_shape), field("new_shape", &GrownTensor::new_shape),
      field("name", &GrownTensor::name,
            "In the file that has grown; empty of a connection, and of a state in memory."));
  bind_result<GrowthResult>(
      module, "GrowthResult", "What a growth of a region did.",
      field("neurons_added", &GrowthResult::neurons_added),
      field("inputs_added", &GrowthResult::inputs_added),
      field("n_neurons", &GrowthResult::n_neurons, "Neurons of the region, now."),
      field("synapses_added", &GrowthResult::synapses_added, "Elements of weights."),
      field("tensors", &GrowthResult::tensors,
            "That have grown, in the order of the state, then of the connections."),
      field("targets_left", &GrowthResult::targets_left,
            "Regions and pathways whose inputs from this region are as many as before, as "
            "grow_targets was not given."),
      field("nothing_done", &GrowthResult::nothing_done,
            "Why nothing was; empty where something was."));
  bind_result<AppendResult>(
      module, "AppendResult", "What a change of a file in place wrote.",
      field("file_bytes", &AppendResult::file_bytes, "The file's size now."),
      field("appended_bytes", &AppendResult::appended_bytes, "Written after the old end."),
      field("dead_bytes", &AppendResult::dead_bytes,
            "Bytes of the whole file that nothing uses now; compact() gives them back."),
      field("generation", &AppendResult::generation), field("seconds", &AppendResult::seconds));
  bind_result<GrowFileResult>(
      module, "GrowFileResult", "What a growth of a region of a file did.",
      field("growth", &GrowFileResult::growth), field("append", &GrowFileResult::append),
      field("restored", &GrowFileResult::restored,
            "Names of tensors that were quantized and have grown: they are dense now."));
  bind_result<PrunedTensor>(
      module, "PrunedTensor", "A tensor that something was removed of.",
      field("region", &PrunedTensor::region, "Or \"SOURCE->TARGET\" of a connection."),
      field("path", &PrunedTensor::path),
      field("removed", &PrunedTensor::removed, "Synapses; for removed neurons, elements."));
  bind_result<Pruning>(
      module, "PruningResult", "What a pruning removed.",
      field("synapses_removed", &Pruning::synapses_removed),
      field("neurons_removed", &Pruning::neurons_removed),
      field("regions_affected", &Pruning::regions_affected), field("tensors", &Pruning::tensors),
      field("neurons", &Pruning::neurons, "Their indices before they were removed."),
      field("spared", &Pruning::spared, "Why something, or all, was left alone."),
      hidden([](auto& result) -> auto& { return result.tree; }))
      .def_prop_ro(
          "log", [](const Pruning& result) -> nb::object { return result.tree; },
          "What undo_pruning() needs: a tree of dictionaries, texts, numbers and arrays, which a "
          "state may hold. None where nothing was removed.",
          nb::sig("def log(self) -> dict[str, typing.Any] | None"));
  bind_result<CapacityMetrics>(
      module, "CapacityMetrics", "How much of a region is in use. Shares are from 0 to 1.",
      field("neuron_count", &CapacityMetrics::neuron_count),
      field("synapse_count", &CapacityMetrics::synapse_count),
      field("firing_rate", &CapacityMetrics::firing_rate,
            "The mean rate, or the share of neurons that fire."),
      field("weight_saturation", &CapacityMetrics::weight_saturation,
            "Share of weights above 0.9 of the largest in their matrix."),
      field("synapse_usage", &CapacityMetrics::synapse_usage, "Share of weights above 0.1."),
      field("utilization", &CapacityMetrics::utilization,
            "0.4 firing_rate + 0.4 weight_saturation + 0.2 synapse_usage."),
      field("growth_recommended", &CapacityMetrics::growth_recommended),
      field("growth_amount", &CapacityMetrics::growth_amount,
            "Neurons, where growth is recommended."),
      field("growth_reason", &CapacityMetrics::growth_reason,
            "\"weight_saturation\", \"firing_rate\", \"synapse_usage\", or empty."),
      field("pruning_safe", &CapacityMetrics::pruning_safe,
            "The state says that the task has not changed for long, and for how long importance "
            "was tracked."));
  bind_result<LoadIntoResult>(
      module, "LoadIntoResult", "What load_into() did.",
      field("tensors_whole", &LoadIntoResult::tensors_whole, "Tensors of the same shape in both."),
      field("tensors_in_corner", &LoadIntoResult::tensors_in_corner,
            "Smaller than the target's: the rest is as it was."),
      field("elements_copied", &LoadIntoResult::elements_copied),
      field("elements_kept", &LoadIntoResult::elements_kept, "The target's own, in these tensors."),
      field("values_copied", &LoadIntoResult::values_copied,
            "Numbers, texts and others that are no tensors."),
      field("regions_grown", &LoadIntoResult::regions_grown),
      field("left_out", &LoadIntoResult::left_out,
            "What the older state has without a counterpart."),
      field("kept", &LoadIntoResult::kept, "Tensors of the target without a counterpart."));
}

}  // namespace

void bind_growth(nb::module_& module) {
  bind_growth_options(module);
  bind_growth_results(module);
  auto brain = nb::borrow<nb::class_<PyBrain>>(nb::type<PyBrain>());
  brain
      .def_static("load", load_state, nb::arg("path"), nb::arg("max_bytes"), nb::arg("search"),
                  nb::arg("access"), nb::arg("threads"))
      .def_prop_ro("warnings", [](PyBrain& self) { return text_list(self.use()->warnings); })
      .def_prop_ro("metadata",
                   [](PyBrain& self) -> ObjectLike<Members> {
                     return object_of(self.use()->state.metadata);
                   })
      .def("set_metadata", set_metadata, nb::arg("name"), nb::arg("value").none())
      .def("take", take)
      .def("grow_output", run_grow_output, nb::arg("region"), nb::arg("n_new"), nb::arg("options"))
      .def("grow_source", run_grow_source, nb::arg("region"), nb::arg("source"),
           nb::arg("new_size"), nb::arg("options"))
      .def("prune_synapses", run_prune_synapses, nb::arg("region"), nb::arg("options"),
           nb::arg("decode"))
      .def("remove_neurons", run_remove_neurons, nb::arg("region"), nb::arg("n_remove"),
           nb::arg("options"), nb::arg("decode"))
      .def("undo_pruning", run_undo_pruning, nb::arg("log"))
      .def("capacity_metrics", run_capacity_metrics, nb::arg("region"))
      .def("check_growth_needs", run_check_growth_needs)
      .def("auto_grow", run_auto_grow, nb::arg("threshold"), nb::arg("options"))
      .def("auto_prune", run_auto_prune, nb::arg("enable"), nb::arg("safety_level"),
           nb::arg("options"), nb::arg("decode"))
      .def("load_into", run_load_into, nb::arg("older"), nb::arg("on_larger"), nb::arg("growth"));
  module.def("grow_file", run_grow_file, nb::arg("path"), nb::arg("region"), nb::arg("n_new"),
             nb::arg("growth"), nb::arg("options"));
  module.def("grow_file_source", run_grow_file_source, nb::arg("path"), nb::arg("region"),
             nb::arg("source"), nb::arg("n_new"), nb::arg("growth"), nb::arg("options"));
}

}  // namespace thalia::python
