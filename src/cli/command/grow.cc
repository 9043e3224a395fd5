// thalia grow: neurons added to a region in place, as one commit. The same options and seed draw
// the same weights. Values of options that only the library can judge are left to it.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/tensor_axes.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/print/tensor_table.h"
#include "cli/terminal/escape.h"
#include "thalia/state/growth.h"

namespace thalia::cli {
namespace {

constexpr std::array kInits{Choice<WeightInit>{"sparse_random", WeightInit::sparse_random},
                            Choice<WeightInit>{"xavier", WeightInit::xavier},
                            Choice<WeightInit>{"uniform", WeightInit::uniform}};

struct GrowArguments {
  std::string file;
  std::string region;
  std::uint32_t neurons = 0;
  std::string source;
  std::string population;
  WeightInit init = WeightInit::sparse_random;
  double sparsity = 0.1;
  std::optional<double> scale;
  std::uint64_t seed = 0;
  std::vector<std::string> axes;
  std::string reason;
};

GrowthOptions growth_options(const GrowArguments& arguments) {
  GrowthOptions options;
  options.initialization = arguments.init;
  options.sparsity = arguments.sparsity;
  options.scale = arguments.scale;
  options.seed = arguments.seed;
  options.population = arguments.population;
  options.reason = arguments.reason;
  options.axes = tensor_axes(arguments.axes);
  return options;
}

void print_shape(JsonWriter& json, std::string_view key, const Shape& shape) {
  json.key(key).begin_array();
  for (const std::uint64_t extent : shape.extents()) json.value(extent);
  json.end_array();
}

// As ls and stats show it.
std::string grown_name(const GrownTensor& tensor) {
  return tensor.name.empty() ? escape_name(tensor.region) + "." + tensor.path
                             : shown_name(tensor.region, tensor.name);
}

void print_json(Output& out, const GrowArguments& arguments, const GrowFileResult& result) {
  const GrowthResult& growth = result.growth;
  print_object(out, "thalia.grow.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.file));
    json.member("region", as_utf8(arguments.region));
    json.member("neurons_added", growth.neurons_added).member("inputs_added", growth.inputs_added);
    json.member("neurons", growth.n_neurons).member("synapses_added", growth.synapses_added);
    json.key("tensors").begin_array();
    for (const GrownTensor& tensor : growth.tensors) {
      json.begin_object();
      add_region(json, tensor.region);
      json.member("name", as_utf8(tensor.name.empty() ? tensor.path : tensor.name));
      print_shape(json, "old_shape", tensor.old_shape);
      print_shape(json, "new_shape", tensor.new_shape);
      json.end_object();
    }
    json.end_array();
    add_list(json, "targets_left", growth.targets_left);
    add_list(json, "restored", result.restored);
    add_append(json, result.append);
  });
}

void print_text(Output& out, const GrowArguments& arguments, const GrowFileResult& result) {
  const GrowthResult& growth = result.growth;
  const std::string added =
      arguments.source.empty()
          ? fmt::format("{}, now {}", counted(growth.neurons_added, "neuron", "neurons"),
                        grouped(growth.n_neurons))
          : fmt::format("{} from {}", counted(growth.inputs_added, "input", "inputs"),
                        escape(arguments.source));
  out.print("{}: {} grew by {}: {}; {} appended, {} dead, generation {}, in {:.2f} s\n",
            escape(arguments.file), escape(arguments.region), added,
            counted(static_cast<std::uint64_t>(growth.synapses_added), "synapse", "synapses"),
            human_bytes(result.append.appended_bytes), human_bytes(result.append.dead_bytes),
            result.append.generation, result.append.seconds);
  for (const GrownTensor& tensor : growth.tensors) {
    out.print("  {}: {} -> {}\n", grown_name(tensor), tensor.old_shape.to_string(),
              tensor.new_shape.to_string());
  }
  for (const std::string& target : growth.targets_left) {
    out.print("  {}: its inputs from {} are as many as before\n", escape(target),
              escape(arguments.region));
  }
  for (const std::string& name : result.restored)
    out.print("  {}: was quantized, dense now\n", escape_name(name));
}

int run_grow(const GrowArguments& arguments, const Session& session) {
  ProgressBar bar("growing " + arguments.file);
  auto options = session.options<AppendOptions>();
  options.change.work.progress = bar.callback();
  const GrowthOptions growth = growth_options(arguments);
  if (arguments.neurons == 0) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--neurons", .value = "0", .bound = "1 or more"});
  }
  const GrowFileResult result =
      arguments.source.empty()
          ? grow_file(arguments.file, arguments.region, arguments.neurons, growth, options)
          : grow_file_source(arguments.file, arguments.region, arguments.source, arguments.neurons,
                             growth, options);
  bar.finish();
  if (session.common.json) {
    print_json(session.out, arguments, result);
  } else {
    print_text(session.out, arguments, result);
  }
  return kDone;
}

}  // namespace

Run declare_grow(CLI::App& app) {
  app.description(
      "Adds neurons to a region in place: rows of all its tensors and of the connections from and "
      "to it. Old elements stay as they are, new weights are drawn, other regions are not touched, "
      "and the growth history gets an event. A crash leaves the old state or the new one.");
  const auto arguments = std::make_shared<GrowArguments>();
  add_model(app, "FILE", arguments->file, "The file to change");
  offer(app.add_option("REGION", arguments->region, "The region that grows")->required(), kRegion);
  add_option(app, "--neurons N", arguments->neurons, "How many neurons more")->required();
  add_option(app, "--source NAME", arguments->source,
             "Add N inputs from this source instead: columns of its tensors only");
  add_option(app, "--population NAME", arguments->population,
             "Which population grows, where the region has several");
  add_choice(app, "--init NAME", arguments->init, kInits,
             "New weights: sparse_random (the default), xavier or uniform");
  add_option(app, "--sparsity S", arguments->sparsity,
             "Share of new connections that sparse_random makes; default 0.1");
  add_option(app, "--scale X", arguments->scale,
             "Bound of new weights: below this, default 0.3; with xavier a factor, default 1");
  add_option(app, "--seed K", arguments->seed, "Equal seeds draw equal weights; default 0");
  add_axes(app, arguments->axes);
  add_option(app, "--reason TEXT", arguments->reason, "For the growth history");
  return [arguments](const Session& session) { return run_grow(*arguments, session); };
}

}  // namespace thalia::cli
