#include "interop/brain_v01.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "model/stored_region.h"
#include "model/tensor_conversion.h"
#include "thalia/checkpoint_metadata.h"
#include "thalia/error.h"
#include "thalia/migrate.h"
#include "thalia/v01.h"
#include "thalia/v01_state.h"

namespace thalia::interop {
namespace {

using model::kPathwayPrefix;
using std::filesystem::path;

void keep_only(RegionSet& set, std::string_view prefix, const std::vector<std::string>& wanted) {
  for (const std::string& name : set.names()) {
    if (std::ranges::find(wanted, std::string(prefix) + name) == wanted.end()) set.remove(name);
  }
}

// Connections whose ends were left out go too.
void keep_only(BrainState& brain, const std::vector<std::string>& wanted, BrainLoadReport& report) {
  for (const std::string& name : wanted) {
    const bool known = name.starts_with(kPathwayPrefix)
                           ? brain.pathways.contains(name.substr(kPathwayPrefix.size()))
                           : brain.regions.contains(name);
    if (!known)
      throw UsageError(ErrorCode::not_found, "no such region", {.region = printable(name)});
  }
  keep_only(brain.regions, "", wanted);
  keep_only(brain.pathways, kPathwayPrefix, wanted);
  std::erase_if(brain.connectivity.all(), [&](const BrainConnection& connection) {
    const bool is_whole = std::ranges::find(wanted, connection.source) != wanted.end() &&
                          std::ranges::find(wanted, connection.target) != wanted.end();
    if (!is_whole)
      report.connections_left_out.push_back(connection.source + "->" + connection.target);
    return !is_whole;
  });
}

// As the original program does: sparse tensors become dense, and under a precision policy halves
// and doubles become floats.
void restore(Value& tree, bool to_f32, unsigned threads) {
  for_each_tensor(tree, [&](const std::string&, Tensor& tensor) {
    tensor = tensor.to_dense();
    if (to_f32 && (tensor.dtype() == DType::f16 || tensor.dtype() == DType::f64))
      tensor = model::convert_tensor(tensor, DType::f32, threads);
  });
}

bool has_policy(const Value& metadata) {
  const Value* policy = metadata.find("precision_policy");
  return policy != nullptr && policy->kind() == Value::Kind::string &&
         policy->as_string() != "fp32";
}

void restore(BrainState& brain, unsigned threads) {
  const bool to_f32 = has_policy(brain.metadata);
  for (RegionSet* set : {&brain.regions, &brain.pathways}) {
    for (const std::string& name : set->names()) restore(set->at(name).state, to_f32, threads);
  }
  restore(brain.state, to_f32, threads);
}

}  // namespace

bool is_v01(const path& source) {
  const auto version = read_format_version(source);
  return version && version->major == 0;
}

BrainState load_v01_brain(const path& source, const BrainLoadOptions& options,
                          BrainLoadReport& report) {
  const V01File file = read_v01(source, options.read);
  if (options.on_warning) {
    for (const std::string& warning : file.warnings) options.on_warning(warning);
  }
  BrainState brain = from_v01(file.document);
  if (!options.regions.empty() && !options.lazy) keep_only(brain, options.regions, report);
  if (options.restore) restore(brain, options.read.threads);
  return brain;
}

BrainInfo describe_v01_brain(const path& source, const ReadOptions& options) {
  const V01File file = read_v01(source, options);
  const format::V01Header& header = file.document.header;
  BrainInfo info{
      .path = source,
      .file_bytes = file.file_bytes,
      .version = FormatVersion{header.major_version, header.minor_version, header.patch_version}
                     .to_string(),
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
  read_v01(source,
           {.access = options.access, .limits = options.limits, .threads = options.threads});
}

}  // namespace thalia::interop
