// Checkpoints of brains. Python builds a state out of trees, and takes one apart into trees; what
// lies in between, naming, precision, sparse storage, deltas, is the library's.
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "checkpoint/validate.h"
#include "python/bindings.h"
#include "python/brain/brain.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/saver.h"
#include "python/value.h"
#include "thalia/error.h"
#include "thalia/formats/file_facts.h"
#include "thalia/reader.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/metadata.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

RegionSet& set_of(BrainState& brain, bool is_pathway) {
  return is_pathway ? brain.pathways : brain.regions;
}

void add_brain_region(PyBrain& self, bool is_pathway, std::string name, nb::handle state,
                      nb::handle metadata, std::uint32_t n_neurons, std::uint32_t n_inputs,
                      const std::string& neuron_type, std::uint64_t homeostatic_updated) {
  const auto use = self.use();
  BrainRegion region{.n_neurons = n_neurons,
                     .n_inputs = n_inputs,
                     .neuron_type = neuron_type_of(neuron_type),
                     .homeostatic_updated = homeostatic_updated,
                     .state = use->value(state),
                     .metadata = use->value(metadata)};
  set_of(use->state, is_pathway).add(std::move(name), std::move(region));
}

void add_brain_connection(PyBrain& self, std::string source, std::string target, nb::handle weights,
                          nb::handle delays) {
  const auto use = self.use();
  BrainConnection connection{
      .source = std::move(source), .target = std::move(target), .weights = use->tensor(weights)};
  if (!delays.is_none()) connection.delays = use->tensor(delays);
  use->state.connectivity.add(std::move(connection));
}

void set_whole(PyBrain& self, nb::handle state, nb::handle state_metadata, nb::handle metadata,
               std::uint64_t training_steps) {
  const auto use = self.use();
  use->state.state = use->value(state);
  use->state.state_metadata = use->value(state_metadata);
  use->state.metadata = use->value(metadata);
  use->state.training_steps = training_steps;
}

// `policy`: the text of one, or None.
BrainSaveOptions brain_options(const std::optional<std::string>& policy, bool include_homeostatic,
                               bool sparse, bool roles_by_name, const Members& save) {
  return {.precision_policy = policy ? parse_precision_policy(*policy) : PrecisionPolicy{},
          .sparse = sparse ? SparseStorage::automatic : SparseStorage::as_is,
          .include_homeostatic = include_homeostatic,
          .roles_by_name = roles_by_name,
          .save = save_options(save)};
}

Members shares_dict(const PrecisionStatistics& statistics) {
  constexpr double kMiB = 1 << 20;
  nb::dict out;
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    const PrecisionStatistics::Share& share = statistics.share(kind);
    nb::dict one;
    one["count"] = share.count;
    one["bytes"] = share.bytes;
    one["mb"] = static_cast<double>(share.bytes) / kMiB;
    one["percent"] = statistics.percent(kind);
    out[text_object(precision_kind_name(kind))] = one;
  }
  out["total_mb"] = static_cast<double>(statistics.total().bytes) / kMiB;
  return out;
}

Members summary_of(const Path& path, const SaveResult& saved, const BrainContents& contents) {
  nb::dict out;
  out["path"] = path;
  out["file_size"] = saved.file_bytes;
  out["num_regions"] = contents.regions;
  out["num_pathways"] = contents.pathways;
  out["total_neurons"] = saved.total_neurons;
  out["total_synapses"] = saved.total_synapses;
  out["seconds"] = saved.seconds;
  out["checksum"] = hex(saved.closing_checksum.bytes);
  out["precision_policy"] = contents.precision_policy;
  out["precision_stats"] = shares_dict(contents.precision_statistics);
  return out;
}

Members dict_of(const BrainSaveResult& result) {
  Members out = summary_of(result.path, result, result.contents);
  out["codec"] = codec_name(result.codec);
  return out;
}

Members dict_of(const BrainDeltaResult& result) {
  Members out = summary_of(result.path, result, result.contents);
  out["base_size"] = result.base_bytes;
  out["changed_regions"] = text_list(result.changed_regions);
  return out;
}

Members save_brain(PyBrain& self, const Path& path, BrainSaveOptions options) {
  const auto use = self.use();
  return dict_of(interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    return BrainCheckpoint::save(use->state, path, options);
  }));
}

// `search`: folders in which bases of the base are looked for.
BrainDeltaOptions delta_options(bool keep_policy, double threshold, bool pack,
                                std::vector<Path> search, BrainSaveOptions brain) {
  return {.keep_policy = keep_policy,
          .loss = {.threshold = threshold},
          .chain = {.search = std::move(search)},
          .brain = std::move(brain),
          .pack = pack};
}

Members save_brain_delta(PyBrain& self, const Path& path, const Path& base,
                         BrainDeltaOptions options) {
  const auto use = self.use();
  return dict_of(interruptible([&](const std::stop_token& stop) {
    options.brain.save.work.cancel = stop;
    return BrainCheckpoint::save_delta(use->state, path, base, options);
  }));
}

SaveHandle<BrainSaveResult> save_brain_async(PyBrain& self, Saver& saver, const Path& path,
                                             Snapshot snapshot, BrainSaveOptions options) {
  return begin_brain(self, saver, snapshot,
                     [&](AsyncSaver& to, const BrainState& state, std::stop_token cancel) {
                       options.save.work.cancel = std::move(cancel);
                       return BrainCheckpoint::save_async(to, state, path, options, snapshot);
                     });
}

SaveHandle<BrainDeltaResult> save_brain_delta_async(PyBrain& self, Saver& saver, const Path& path,
                                                    const Path& base, Snapshot snapshot,
                                                    BrainDeltaOptions options) {
  return begin_brain(
      self, saver, snapshot, [&](AsyncSaver& to, const BrainState& state, std::stop_token cancel) {
        options.brain.save.work.cancel = std::move(cancel);
        return BrainCheckpoint::save_delta_async(to, state, path, base, options, snapshot);
      });
}

// A state that was loaded, to be taken apart once. Its regions may be read when they are taken.
class LoadedBrain {
 public:
  LoadedBrain(const Path& path, BrainLoadOptions options, bool resolve_deltas) {
    options.resolve_deltas = resolve_deltas;
    options_ = options;
    options.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    const auto format = detect_format(path, options.chain.read.input.access);
    if (format && file_format_name(*format) == "thalia-0.1") {
      original_ = true;
      state_ = BrainCheckpoint::load(path, options);
    } else {
      reader_.emplace(Reader::open(path, options.chain.read));
      state_ = BrainCheckpoint::load(*reader_, options);
    }
  }

  LoadedBrain(Reader reader, BrainLoadOptions options)
      : reader_(std::move(reader)), options_(std::move(options)) {
    BrainLoadOptions warning = options_;
    warning.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    state_ = BrainCheckpoint::load(*reader_, warning);
  }

  // One of the brains of an ensemble. What is odd about the file, this has told.
  std::unique_ptr<LoadedBrain> brain(const std::string& prefix) const {
    BrainLoadOptions options = options_;
    options.brain = prefix;
    return interruptible([&](const std::stop_token& stop) {
      options.chain.read.work.cancel = stop;
      return std::make_unique<LoadedBrain>(*reader_, options);
    });
  }
  // None in a file of version 0.1.
  ListOf<std::string> prefixes() const {
    return text_list(reader_ ? ensemble_prefixes(state_.metadata) : std::vector<std::string>());
  }

  bool is_original() const { return original_; }
  ListOf<std::string> names(bool is_pathway) {
    return text_list(set_of(state_, is_pathway).names());
  }
  ListOf<std::string> warnings() const { return text_list(warnings_); }
  ObjectLike<Members> metadata() const { return object_of(state_.metadata); }
  ObjectLike<Members> state() const { return object_of(state_.state); }
  ObjectLike<Members> state_metadata() const { return object_of(state_.state_metadata); }
  std::uint64_t training_steps() const { return state_.training_steps; }

  // Its state and its facts. It is empty then.
  TupleWith<Members, Members> take(bool is_pathway, const std::string& name) {
    BrainRegion taken;
    {
      const Unlocked unlocked;
      taken = std::move(set_of(state_, is_pathway).at(name));
    }
    return nb::make_tuple(object_of(taken.state), facts_of(taken));
  }

  // No tensor is read for it.
  Members facts(bool is_pathway, const std::string& name) {
    const RegionSet& regions = set_of(state_, is_pathway);
    if (regions.is_loaded(name)) return facts_of(regions.at(name));
    if (!outline_) {
      outline_ = BrainCheckpoint::load(
          *reader_, {.brain = options_.brain, .lazy = true, .read_tensors = false});
    }
    return facts_of(set_of(*outline_, is_pathway).at(name));
  }

  ListOf<TupleWith<std::string, std::string, LoadedTensor, std::optional<LoadedTensor>>>
  connections() {
    const std::vector<BrainConnection>* all = nullptr;
    {
      const Unlocked unlocked;
      all = &std::as_const(state_.connectivity).all();
    }
    nb::list out;
    for (const BrainConnection& connection : *all) {
      out.append(nb::make_tuple(
          text_object(connection.source), text_object(connection.target),
          nb::cast(LoadedTensor{connection.weights}),
          connection.delays ? nb::cast(LoadedTensor{*connection.delays}) : nb::none()));
    }
    return out;
  }

 private:
  static Members facts_of(const BrainRegion& region) {
    nb::dict out;
    out["n_neurons"] = region.n_neurons;
    out["n_inputs"] = region.n_inputs;
    out["neuron_type"] = neuron_type_name(region.neuron_type);
    out["homeostatic_updated"] = region.homeostatic_updated;
    out["metadata"] = object_of(region.metadata);
    return out;
  }

  BrainState state_;
  std::optional<Reader> reader_;  ///< none of a file of version 0.1
  BrainLoadOptions options_;
  std::optional<BrainState> outline_;  ///< once it was asked for
  std::vector<std::string> warnings_;
  bool original_ = false;
};

ReadOptions limited(ReadOptions read, std::uint64_t max_bytes) {
  ReadLimits& limits = read.input.limits;
  limits.max_file_bytes = max_bytes;
  if (limits.max_allocation_bytes == 0 || limits.max_allocation_bytes > max_bytes)
    limits.max_allocation_bytes = max_bytes;
  return read;
}

std::unique_ptr<LoadedBrain> load_brain(const Path& path, std::vector<std::string> regions,
                                        bool lazy, bool read_tensors, bool resolve_deltas,
                                        std::uint64_t max_bytes, std::vector<Path> search,
                                        const std::string& access, const std::string& verification,
                                        unsigned threads) {
  BrainLoadOptions options{
      .regions = std::move(regions),
      .lazy = lazy,
      .chain = {.read = limited(read_options(access, verification, threads), max_bytes),
                .search = std::move(search)},
      .read_tensors = read_tensors,
      .max_file_bytes = max_bytes};
  auto brain = interruptible([&](const std::stop_token& stop) {
    options.chain.read.work.cancel = stop;
    return std::make_unique<LoadedBrain>(path, options, resolve_deltas);
  });
  return brain;
}

BrainInfo brain_info(const Path& path) {
  return interruptible([&](const std::stop_token& stop) {
    return BrainCheckpoint::info(path, {.work = {.cancel = stop}});
  });
}

void bind_info(nb::module_& module) {
  nb::class_<BrainInfo>(module, "BrainInfo", "What a checkpoint of a brain says of itself.")
      .def_ro("file_bytes", &BrainInfo::file_bytes)
      .def_ro("version", &BrainInfo::version)
      .def_ro("timestamp", &BrainInfo::timestamp)
      .def_ro("total_neurons", &BrainInfo::total_neurons)
      .def_ro("total_synapses", &BrainInfo::total_synapses)
      .def_ro("training_steps", &BrainInfo::training_steps)
      .def_ro("regions", &BrainInfo::regions)
      .def_ro("pathways", &BrainInfo::pathways)
      .def_prop_ro(
          "metadata",
          [](const BrainInfo& info) -> ObjectLike<Members> { return object_of(info.metadata); })
      .def_ro("is_delta", &BrainInfo::is_delta);
  module.def("brain_info", brain_info, nb::arg("path"));
}

// (valid, issues, the state without its tensors): of a valid file, for what Python has to check.
TupleWith<bool, ListOf<std::string>, std::optional<LoadedBrain>> validate_brain(
    const Path& path, const std::vector<Path>& search) {
  const BrainLoadOptions outline{.lazy = true, .read_tensors = false};
  std::unique_ptr<LoadedBrain> brain;
  const BrainValidation found = interruptible([&](const std::stop_token& stop) {
    checkpoint::ValidatedBrain validated =
        checkpoint::validate_brain(path, {.work = {.cancel = stop}}, search, {});
    if (validated.reader) {
      brain = std::make_unique<LoadedBrain>(*std::move(validated.reader), outline);
    } else if (validated.validation.valid) {
      brain = std::make_unique<LoadedBrain>(path, outline, /*resolve_deltas=*/true);
    }
    return std::move(validated.validation);
  });
  return nb::make_tuple(found.valid, text_list(found.issues), nb::cast(std::move(brain)));
}

// Events as the format has them, of any of the shapes that it ever had.
ObjectLike<ListOf<Members>> growth_events(nb::handle events) {
  std::vector<HeldBuffer> none;
  Value metadata = Value::object();
  metadata.add("growth_history", value_of(events, none));
  return object_of(to_value(checkpoint_metadata(metadata)).at("growth_history"));
}

Members policy_dict(const std::string& text) {
  const PrecisionPolicy policy = parse_precision_policy(text);
  nb::dict out;
  for (std::size_t i = 0; i < kPrecisionCategoryCount; ++i) {
    const auto category = static_cast<PrecisionCategory>(i);
    out[text_object(category_name(category))] = precision_name(policy.of(category));
  }
  nb::dict patterns;
  for (const PrecisionPattern& pattern : policy.patterns)
    patterns[text_object(pattern.glob)] = precision_name(pattern.precision);
  out["patterns"] = patterns;
  out["match"] = policy.matching == CategoryMatching::original ? "original" : "roles";
  return out;
}

Precision precision_named(const std::string& name) {
  if (const auto precision = precision_from_name(name)) return *precision;
  fail_choice("precision", name, "fp32, fp16, bf16, keep, auto");
}

std::string policy_text(const nb::typed<nb::dict, std::string, std::string>& categories,
                        const std::vector<std::pair<std::string, std::string>>& patterns,
                        bool original) {
  PrecisionPolicy policy;
  for (const auto& [key, value] : categories) {
    const auto category = category_from_name(nb::cast<std::string>(key));
    policy.of(category.value()) = precision_named(nb::cast<std::string>(value));
  }
  for (const auto& [glob, precision] : patterns)
    policy.patterns.push_back({glob, precision_named(precision)});
  if (original) policy.matching = CategoryMatching::original;
  return to_string(policy);
}

void bind_building(nb::module_& module) {
  nb::class_<BrainSaveOptions>(module, "BrainSaveOptions")
      .def(
          "__init__",
          [](BrainSaveOptions* self, const std::optional<std::string>& policy,
             bool include_homeostatic, bool sparse, bool roles_by_name, const Members& save) {
            new (self) BrainSaveOptions(
                brain_options(policy, include_homeostatic, sparse, roles_by_name, save));
          },
          nb::arg("policy").none(), nb::arg("include_homeostatic"), nb::arg("sparse"),
          nb::arg("roles_by_name"), nb::arg("save"));
  nb::class_<BrainDeltaOptions>(module, "BrainDeltaOptions")
      .def(
          "__init__",
          [](BrainDeltaOptions* self, bool keep_policy, double threshold, bool pack,
             std::vector<Path> search, const BrainSaveOptions& brain) {
            new (self) BrainDeltaOptions(
                delta_options(keep_policy, threshold, pack, std::move(search), brain));
          },
          nb::arg("keep_policy"), nb::arg("threshold"), nb::arg("pack"), nb::arg("search"),
          nb::arg("brain"));
  const auto snapshot_of = [](const std::string& name) {
    return chosen<Snapshot>("snapshot", name,
                            {{"copy", Snapshot::copy}, {"borrowed", Snapshot::borrowed}});
  };
  nb::class_<PyBrain>(module, "Brain")
      .def("__init__", [](PyBrain* self) { new (self) PyBrain("the state"); })
      .def("add_region", add_brain_region, nb::arg("is_pathway"), nb::arg("name"), nb::arg("state"),
           nb::arg("metadata"), nb::arg("n_neurons"), nb::arg("n_inputs"), nb::arg("neuron_type"),
           nb::arg("homeostatic_updated"))
      .def("add_connection", add_brain_connection, nb::arg("source"), nb::arg("target"),
           nb::arg("weights"), nb::arg("delays").none())
      .def("set_whole", set_whole, nb::arg("state"), nb::arg("state_metadata"), nb::arg("metadata"),
           nb::arg("training_steps"))
      .def("save", save_brain, nb::arg("path"), nb::arg("options"))
      .def("save_delta", save_brain_delta, nb::arg("path"), nb::arg("base"), nb::arg("options"))
      .def(
          "save_async",
          [=](PyBrain& self, Saver& saver, const Path& path, const std::string& snapshot,
              const BrainSaveOptions& options) {
            return save_brain_async(self, saver, path, snapshot_of(snapshot), options);
          },
          nb::arg("saver"), nb::arg("path"), nb::arg("snapshot"), nb::arg("options"))
      .def(
          "save_delta_async",
          [=](PyBrain& self, Saver& saver, const Path& path, const Path& base,
              const std::string& snapshot, const BrainDeltaOptions& options) {
            return save_brain_delta_async(self, saver, path, base, snapshot_of(snapshot), options);
          },
          nb::arg("saver"), nb::arg("path"), nb::arg("base"), nb::arg("snapshot"),
          nb::arg("options"));
  bind_handle<BrainSaveResult>(module, "BrainSaveHandle",
                               [](const BrainSaveResult& result) { return dict_of(result); });
  bind_handle<BrainDeltaResult>(module, "BrainDeltaHandle",
                                [](const BrainDeltaResult& result) { return dict_of(result); });
}

}  // namespace

void bind_brain(nb::module_& module) {
  bind_building(module);
  nb::class_<LoadedBrain>(module, "LoadedBrain")
      .def_static("load", load_brain, nb::arg("path"), nb::arg("regions"), nb::arg("lazy"),
                  nb::arg("read_tensors"), nb::arg("resolve_deltas"), nb::arg("max_bytes"),
                  nb::arg("search"), nb::arg("access"), nb::arg("verification"), nb::arg("threads"))
      .def_prop_ro("is_original", &LoadedBrain::is_original)
      .def_prop_ro("regions", [](LoadedBrain& brain) { return brain.names(false); })
      .def_prop_ro("pathways", [](LoadedBrain& brain) { return brain.names(true); })
      .def_prop_ro("warnings", &LoadedBrain::warnings)
      .def_prop_ro("metadata", &LoadedBrain::metadata)
      .def_prop_ro("state", &LoadedBrain::state)
      .def_prop_ro("state_metadata", &LoadedBrain::state_metadata)
      .def_prop_ro("training_steps", &LoadedBrain::training_steps)
      .def("take", &LoadedBrain::take, nb::arg("is_pathway"), nb::arg("name"))
      .def("facts", &LoadedBrain::facts, nb::arg("is_pathway"), nb::arg("name"))
      .def("connections", &LoadedBrain::connections)
      .def_prop_ro("prefixes", &LoadedBrain::prefixes)
      .def("brain", &LoadedBrain::brain, nb::arg("prefix"));
  bind_info(module);
  module.def("validate_brain", validate_brain, nb::arg("path"), nb::arg("search"));
  module.def("growth_events", growth_events);
  module.def("precision_policy", policy_dict);
  module.def("precision_text", policy_text, nb::arg("categories"), nb::arg("patterns"),
             nb::arg("original"));
}

}  // namespace thalia::python
