// thalia prune: dead synapses, or silent neurons, left out of a new file. IN stays as it is, so
// that there is nothing to undo. What is spared is reported with the reason, and where nothing may
// go nothing is written.
#include "thalia/state/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "cli/command/command.h"
#include "cli/options/save_arguments.h"
#include "cli/options/tensor_axes.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/state/checkpoint.h"

namespace thalia::cli {
namespace {

struct PruneArguments {
  std::string input;
  std::string output;
  std::vector<std::string> regions;
  PruneOptions synapses;
  std::optional<std::uint64_t> neurons;  ///< that go at most; without it synapses do
  RemoveOptions silence;
  std::vector<std::string> axes;
  SaveArguments save;
};

struct SparedRegions {
  std::string reason;
  std::vector<std::string> regions;
};

// What was done to all regions.
struct Pruned {
  PruneResult sum;  ///< without `spared` and `log`
  std::vector<SparedRegions> spared;
  bool is_tracked = false;  ///< some region says what is needed to tell what is unused
  std::vector<std::string> warnings;
  double largest_error = 0;  ///< of the file's policy of precisions, if it rounds
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  double seconds = 0;

  bool is_written() const { return sum.synapses_removed + sum.neurons_removed != 0; }
};

// As files name them.
std::vector<std::string> all_region_names(const BrainState& brain) {
  std::vector<std::string> names = brain.regions.names();
  for (const std::string& name : brain.pathways.names()) names.push_back("pathway:" + name);
  return names;
}

const BrainRegion& region_named(const BrainState& brain, const std::string& name) {
  const BrainRegion* const found = brain.regions.find(name);
  return found ? *found : brain.pathways.at(name.substr(name.find(':') + 1));
}

// As it was typed, or with escapes undone. `nothing` is what an error says of another name.
std::string known_name(const char* option, std::string_view nothing, const std::string& typed,
                       const std::vector<std::string>& known) {
  for (const std::string& name : {typed, unescape_name(typed)})
    if (std::ranges::find(known, name) != known.end()) return name;
  throw UsageError(
      ErrorCode::not_found,
      fmt::format("{} is named '{}'{}", nothing, escape(typed), suggestion_among(typed, known)),
      {.field = option});
}

// The regions that were named, each once; all if none was.
std::vector<std::string> chosen_regions(const BrainState& brain, const PruneArguments& arguments) {
  std::vector<std::string> all = all_region_names(brain);
  if (arguments.regions.empty()) return all;
  std::vector<std::string> chosen;
  for (const std::string& typed : arguments.regions) {
    std::string name = known_name("--region", "no region", typed, all);
    if (std::ranges::find(chosen, name) == chosen.end()) chosen.push_back(std::move(name));
  }
  return chosen;
}

// A name that protects nothing is a mistake.
std::vector<std::string> protected_names(const BrainState& brain,
                                         const std::vector<std::string>& regions,
                                         const std::vector<std::string>& typed) {
  if (typed.empty()) return {};
  std::vector<std::string> known = regions;
  for (const std::string& name : regions) {
    const Value* const weights = region_named(brain, name).find_path("weights");
    if (weights == nullptr) continue;
    for_each_tensor(*weights, [&](const std::string& path, const Tensor&) {
      known.push_back(name + "/weights." + path);
    });
  }
  std::vector<std::string> names;
  for (const std::string& one : typed)
    names.push_back(known_name("--protect", "nothing that is pruned", one, known));
  return names;
}

// Regions that are spared for one reason are listed together.
void add(Pruned& pruned, const std::string& region, const PruneResult& result) {
  PruneResult& sum = pruned.sum;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  sum.synapses_removed += result.synapses_removed;
  sum.neurons_removed += result.neurons_removed;
  append(sum.regions_affected, result.regions_affected);
  for (const PrunedTensor& tensor : result.tensors) {
    // A tensor with two axes of neurons comes twice.
    auto& all = sum.tensors;
    if (!all.empty() && all.back().region == tensor.region && all.back().path == tensor.path) {
      all.back().removed += tensor.removed;
    } else {
      all.push_back(tensor);
    }
  }
  append(sum.neurons, result.neurons);
  for (const std::string& reason : result.spared) {
    auto& all = pruned.spared;
    auto found = std::ranges::find(all, reason, &SparedRegions::reason);
    if (found == all.end()) found = all.insert(all.end(), {reason, {}});
    found->regions.push_back(region);
  }
}

bool is_tracked(const BrainRegion& region, bool of_neurons) {
  const auto has = [&](const char* path) { return region.find_path(path) != nullptr; };
  if (of_neurons) return has("learning_state.silent_steps");
  return has("learning_state.synapse_age") && has("learning_state.synapse_importance");
}

void prune(BrainState& brain, const PruneArguments& arguments, Pruned& pruned) {
  const std::vector<std::string> regions = chosen_regions(brain, arguments);
  PruneOptions synapses = arguments.synapses;
  synapses.guard.protected_names = protected_names(brain, regions, synapses.guard.protected_names);
  RemoveOptions silence = arguments.silence;
  silence.task_window_steps = synapses.importance_window_steps;
  silence.axes = tensor_axes(arguments.axes);
  const bool of_neurons = arguments.neurons.has_value();
  for (const std::string& name : regions) {
    pruned.is_tracked |= is_tracked(region_named(brain, name), of_neurons);
    add(pruned, name,
        of_neurons ? remove_neurons(brain, name, *arguments.neurons, silence)
                   : prune_synapses(brain, name, synapses));
  }
}

// Types that a policy narrowed are wide in memory, and go back to what the file has. "fp32" narrows
// nothing that the file names; a text that is no policy is somebody else's member of that name.
PrecisionPolicy policy_of(const BrainState& brain) {
  const Value* const text = brain.metadata.find("precision_policy");
  if (text == nullptr || text->kind() != Value::Kind::string || text->as_string() == "fp32")
    return {};
  try {
    return parse_precision_policy(text->as_string());
  } catch (const UsageError&) {
    return {};
  }
}

Pruned prune_file(const PruneArguments& arguments, const Session& session) {
  const Stopwatch watch;
  Pruned pruned;
  auto save = session.options<BrainSaveOptions>();
  save.save = arguments.save.options(session).save;
  auto load = session.options<BrainLoadOptions>();
  load.max_file_bytes = 0;
  load.on_warning = [&](const std::string& warning) { pruned.warnings.push_back(warning); };
  BrainState brain =
      is_in_parts(arguments.input, session.access())
          ? BrainCheckpoint::load(ResolvedFile(arguments.input, folder_of(arguments.output),
                                               session.options<ChainOptions>())
                                      .reader(),
                                  load)
          : BrainCheckpoint::load(arguments.input, load);
  pruned.input_bytes = file_bytes(arguments.input);
  prune(brain, arguments, pruned);
  if (pruned.is_written()) {
    ProgressBar bar("pruning " + arguments.input);
    save.precision_policy = policy_of(brain);
    save.save.work.progress = bar.callback();
    const BrainSaveResult saved = BrainCheckpoint::save(brain, arguments.output, save);
    bar.finish();
    pruned.output_bytes = saved.file_bytes;
    pruned.largest_error = saved.contents.rounding.largest_error;
  }
  pruned.seconds = watch.seconds();
  return pruned;
}

// As --protect takes it; of a connection as ls has it.
std::string shown_place(const PrunedTensor& tensor) {
  const bool in_region = tensor.path.find('.') != std::string::npos;
  return escape_name(tensor.region) + (in_region ? '/' : '.') + escape_name(tensor.path);
}

// Why nothing is pruned; empty where the regions' own reasons say it.
std::string why_nothing(const Pruned& pruned, bool of_neurons) {
  if (!pruned.is_tracked) {
    return of_neurons ? ": it does not tell how long neurons were silent "
                        "(learning_state.silent_steps)"
                      : ": it does not tell ages and importances of synapses "
                        "(learning_state.synapse_age and .synapse_importance)";
  }
  if (!pruned.spared.empty()) return "";
  return of_neurons ? ": no neuron was silent for long"
                    : ": no synapse is weak, old and unimportant";
}

void print_text(Output& out, const PruneArguments& arguments, const Pruned& pruned) {
  const bool of_neurons = arguments.neurons.has_value();
  for (const std::string& warning : pruned.warnings) {
    out.write(Style::warning, "warning:");
    out.print(" {}\n", escape(warning));
  }
  if (pruned.is_written()) {
    std::string what;
    if (of_neurons) what = counted(pruned.sum.neurons_removed, "neuron", "neurons") + " and ";
    what += counted(pruned.sum.synapses_removed, "synapse", "synapses");
    out.print("{}: {} removed, {} from {} in {:.2f} s\n", escape(arguments.output), what,
              human_bytes(pruned.output_bytes), human_bytes(pruned.input_bytes), pruned.seconds);
  } else {
    out.print("{}: nothing can be pruned{}\n", escape(arguments.input),
              why_nothing(pruned, of_neurons));
  }
  for (const PrunedTensor& tensor : pruned.sum.tensors) {
    out.print("  {}: {}\n", shown_place(tensor),
              of_neurons ? counted(tensor.removed, "element", "elements")
                         : counted(tensor.removed, "synapse", "synapses"));
  }
  for (const SparedRegions& spared : pruned.spared) {
    const std::size_t count = spared.regions.size();
    out.print("spared: {}: {}\n",
              count == 1 ? escape_name(spared.regions[0]) : counted(count, "region", "regions"),
              escape(spared.reason));
  }
  if (pruned.largest_error != 0)
    out.print("rounding: largest error {:.3g}\n", pruned.largest_error);
  if (!pruned.is_written()) out.print("{} is not written\n", escape(arguments.output));
}

void print_json(Output& out, const PruneArguments& arguments, const Pruned& pruned) {
  print_object(out, "thalia.prune.1", [&](JsonWriter& json) {
    add_files(json, arguments.input, arguments.output);
    json.member("written", pruned.is_written()).member("tracked", pruned.is_tracked);
    json.member("synapses_removed", pruned.sum.synapses_removed);
    json.member("neurons_removed", pruned.sum.neurons_removed);
    add_list(json, "regions_affected", pruned.sum.regions_affected);
    json.key("tensors").begin_array();
    for (const PrunedTensor& tensor : pruned.sum.tensors) {
      json.begin_object().member("region", as_utf8(tensor.region));
      json.member("path", as_utf8(tensor.path)).member("removed", tensor.removed).end_object();
    }
    json.end_array().key("neurons").begin_array();
    for (const std::uint64_t neuron : pruned.sum.neurons) json.value(neuron);
    json.end_array().key("spared").begin_array();
    for (const SparedRegions& spared : pruned.spared) {
      json.begin_object().member("reason", as_utf8(spared.reason));
      add_list(json, "regions", spared.regions);
      json.end_object();
    }
    json.end_array();
    json.member("largest_error", pruned.largest_error);
    add_list(json, "warnings", pruned.warnings);
    add_sizes_and_time(json, pruned);
  });
}

int run_prune(const PruneArguments& arguments, const Session& session) {
  if (arguments.neurons && *arguments.neurons == 0) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--neurons", .value = "0", .bound = "1 or more"});
  }
  if (arguments.neurons && arguments.regions.size() != 1) {
    throw UsageError(ErrorCode::bad_argument, "neurons are removed from one region",
                     {.field = "--region",
                      .value = counted(arguments.regions.size(), "region", "regions"),
                      .bound = "one"});
  }
  const Pruned pruned = prune_file(arguments, session);
  session.common.json ? print_json(session.out, arguments, pruned)
                      : print_text(session.out, arguments, pruned);
  return pruned.is_written() ? kDone : kFailed;
}

}  // namespace

Run declare_prune(CLI::App& app) {
  app.description(
      "Writes a checkpoint without its dead synapses: weights that are weak, old, and were "
      "unimportant for long. With --neurons it removes neurons that are silent, with their rows "
      "and "
      "columns everywhere. What is not known to be unused stays, and why is told. IN stays as it "
      "is: to undo a pruning, keep IN. Quantized weights are dense in OUT, and a delta is a full "
      "file. Exit status 1, and no OUT, where nothing can be pruned.");
  app.footer(
      "IN has to say what is unused: learning_state.synapse_age and .synapse_importance for each "
      "matrix, learning_state.importance_window_steps, learning_state.silent_steps for neurons, "
      "and "
      "task_change (docs/format/growth.md, \"Pruning\").\n\n"
      "Examples:\n  thalia prune run.thalia smaller.thalia --protect pons/weights.w_in\n"
      "  thalia prune run.thalia smaller.thalia --region cortex --neurons 8");
  const auto arguments = std::make_shared<PruneArguments>();
  PruneOptions& synapses = arguments->synapses;
  RemoveOptions& silence = arguments->silence;
  add_model(app, "IN", arguments->input, "The file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  CLI::Option* const region =
      offer(add_option(app, "--region R", arguments->regions,
                       "Prune this region, by default all; may be repeated"),
            kRegion);
  CLI::Option* const neurons =
      add_option(
          app, "--neurons N", arguments->neurons,
          "Remove up to N silent neurons of the one region instead, the longest silent first")
          ->needs(region);
  add_option(app, "--threshold X", synapses.threshold,
             "Absolute values of weights below it are weak; default 0.01")
      ->excludes(neurons);
  add_option(app, "--min-age STEPS", synapses.min_age_steps,
             "Leave synapses that are younger; default 10000")
      ->excludes(neurons);
  add_option(app, "--importance-window STEPS", synapses.importance_window_steps,
             "Steps over which importance must have been tracked, and since the task changed; "
             "default 50000");
  add_option(app, "--importance X", synapses.importance_threshold,
             "Importance below it counts as none; default 0.001")
      ->excludes(neurons);
  add_option(app, "--protect NAME", synapses.guard.protected_names,
             "Leave this region, or this matrix, REGION/weights.NAME; may be repeated")
      ->excludes(neurons);
  add_option(app, "--min-silent STEPS", silence.min_silent_steps,
             "With --neurons: those are silent that have not fired for more; default 100000")
      ->needs(neurons);
  add_option(app, "--strong X", silence.strong_weight,
             "With --neurons: leave those with a weight of this size or more; default 0.1")
      ->needs(neurons);
  add_axes(app, arguments->axes)->needs(neurons);
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_prune(*arguments, session); };
}

}  // namespace thalia::cli
