// Files of version 0.1 behind the interface of BrainCheckpoint (docs/format/v01.md). Such a file
// has no index, so every function reads all of it, and a selection of regions is made afterwards.
// restore() gives what the original program's load gives; without it, tensors stay as they are
// stored.
#include "checkpoint/v01.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "formats/v01/state.h"
#include "io/memory/allocation_limit.h"
#include "state/brain/stored_region.h"
#include "state/brain/stored_tensor.h"
#include "state/tensor/conversion.h"
#include "thalia/error.h"
#include "thalia/formats/v01.h"
#include "thalia/state/metadata.h"

namespace thalia::checkpoint {
namespace {

using std::filesystem::path;

using Names = std::unordered_set<std::string>;

void keep_only(RegionSet& set, std::string_view prefix, const Names& wanted) {
  RegionSet kept;
  for (const std::string& name : set.names()) {
    if (wanted.contains(std::string(prefix) + name)) kept.add(name, std::move(set.at(name)));
  }
  set = std::move(kept);
}

// A connection goes with either of its ends, and is reported.
void keep_only(BrainState& brain, const std::vector<std::string>& names, BrainLoadReport& report) {
  const Names wanted(names.begin(), names.end());
  for (const std::string& name : names) {
    const bool known = name.starts_with(state::kPathwayPrefix)
                           ? brain.pathways.contains(name.substr(state::kPathwayPrefix.size()))
                           : brain.regions.contains(name);
    if (!known)
      throw UsageError(ErrorCode::not_found, "no such region", {.region = printable(name)});
  }
  keep_only(brain.regions, "", wanted);
  keep_only(brain.pathways, state::kPathwayPrefix, wanted);
  std::erase_if(brain.connectivity.all(), [&](const BrainConnection& connection) {
    const bool is_whole = wanted.contains(connection.source) && wanted.contains(connection.target);
    if (!is_whole)
      report.connections_left_out.push_back(connection.source + "->" + connection.target);
    return !is_whole;
  });
}

// The largest number where it overflows, which no limit allows.
std::uint64_t dense_bytes(const Tensor& tensor) {
  return tensor.shape().byte_length(tensor.dtype()).value_or(~std::uint64_t{0});
}

// As the original program does: sparse tensors become dense, and under a precision policy f16 and
// f64 become f32.
void restore(Value& tree, bool to_f32, const state::LoadContext& context) {
  const unsigned threads = context.options.work.threads;
  for_each_tensor(tree, [&](const std::string&, Tensor& tensor) {
    if (!tensor.is_dense()) context.budget->take("payload", dense_bytes(tensor));
    tensor = tensor.to_dense();
    if (to_f32 && (tensor.dtype() == DType::f16 || tensor.dtype() == DType::f64))
      tensor = state::convert_tensor(tensor, DType::f32, threads);
  });
}

// In the original, "fp32" says that nothing was converted.
bool has_policy(const Value& metadata) {
  const Value* policy = metadata.find("precision_policy");
  return policy != nullptr && policy->kind() == Value::Kind::string &&
         policy->as_string() != "fp32";
}

void restore(BrainState& brain, const state::LoadContext& context) {
  const bool to_f32 = has_policy(brain.metadata);
  for (RegionSet* set : {&brain.regions, &brain.pathways}) {
    for (const std::string& name : set->names()) restore(set->at(name).state, to_f32, context);
  }
  restore(brain.state, to_f32, context);
}

}  // namespace

bool is_v01(const path& source) {
  const auto version = read_format_version(source);
  return version && version->major == 0;
}

BrainState load_v01_brain(const path& source, const BrainLoadOptions& options,
                          BrainLoadReport& report) {
  const V01File file = read_v01(source, options.chain.read);
  if (options.on_warning) {
    for (const std::string& warning : file.warnings) options.on_warning(warning);
  }
  BrainState brain = from_v01(file.document);
  // A lazy load leaves no region out; these are all in memory anyway.
  if (!options.regions.empty() && !options.lazy) keep_only(brain, options.regions, report);
  if (options.restore) {
    restore(brain, {{.input = {.limits = options.chain.read.input.limits},
                     .work = options.chain.read.work},
                    file.file_bytes});
  }
  return brain;
}

BrainInfo describe_v01_brain(const path& source, const ReadOptions& options) {
  const V01File file = read_v01(source, options);
  const V01Header& header = file.document.header;
  BrainInfo info{.path = source,
                 .file_bytes = file.file_bytes,
                 .version = header.version.to_string(),
                 .timestamp = header.timestamp,
                 .total_neurons = header.total_neurons,
                 .total_synapses = header.total_synapses,
                 .training_steps = header.training_steps};
  const BrainState brain = from_v01(file.document);
  info.regions = brain.regions.names();
  info.pathways = brain.pathways.names();
  info.connections = brain.connectivity.size();
  info.metadata = file.document.metadata;
  info.growth_history = checkpoint_metadata(info.metadata).growth_history;
  return info;
}

void check_v01_brain(const path& source, const VerifyOptions& options) {
  read_v01(source, {.input = options.input, .work = options.work});
}

}  // namespace thalia::checkpoint
