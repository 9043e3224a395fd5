// The facts of a file as a dict.
#include <optional>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/file_facts.h"
#include "python/objects.h"
#include "python/options.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

nb::object sums_dict(const std::optional<TensorSums>& sums) {
  if (!sums) return nb::none();
  nb::list dtypes;
  for (std::size_t i = 0; i < sums->dtypes.size(); ++i) {
    const TensorSums::OfDType& of = sums->dtypes[i];
    if (of.tensors == 0) continue;
    nb::dict one;
    one["dtype"] = dtype_name(static_cast<DType>(i));
    one["tensors"] = of.tensors;
    one["elements"] = of.elements;
    one["logical_bytes"] = of.logical_bytes;
    dtypes.append(one);
  }
  nb::list codecs;
  for (const Codec codec : sums->codecs) codecs.append(codec_name(codec));
  nb::dict out;
  out["dtypes"] = dtypes;
  out["codecs"] = codecs;
  out["tensors"] = sums->tensors;
  out["parameters"] = sums->parameters;
  out["logical_bytes"] = sums->logical_bytes;
  out["value_bytes"] = sums->value_bytes;
  out["stored_bytes"] = sums->stored_bytes;
  out["quantized_tensors"] = sums->quantized;
  out["lossy_generation"] = sums->lossy_generation;
  out["max_lossy_generations"] = sums->max_lossy_generations;
  return out;
}

nb::object wrapper_dict(const std::optional<WrapperFacts>& wrapper) {
  if (!wrapper) return nb::none();
  nb::dict out;
  out["codec"] = codec_name(wrapper->codec);
  out["frames"] = wrapper->frames;
  return out;
}

nb::object base_dict(const std::optional<BaseFacts>& base) {
  if (!base) return nb::none();
  nb::dict out;
  out["path"] = base->path ? text_object(*base->path) : nb::none();
  out["checksum"] = base->checksum;
  out["training_steps"] = base->training_steps;
  out["depth"] = base->depth;
  return out;
}

nb::dict run_info(const Path& path, const std::string& access) {
  ChainOptions options = chain_options(access, {}, 0);
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const FileFacts facts = interruptible([&](const std::stop_token& stop) {
    options.read.work.cancel = stop;
    return describe_file(path, options);
  });
  nb::dict out;
  out["format"] = file_format_name(facts.format);
  out["version"] = facts.version;
  out["side_file"] = facts.is_side_file;
  out["disk_bytes"] = facts.disk_bytes;
  out["file_bytes"] = facts.file_bytes;
  out["dead_bytes"] = facts.dead_bytes;
  out["debris_bytes"] = facts.debris_bytes;
  out["wrapper"] = wrapper_dict(facts.wrapper);
  out["regions"] = facts.regions;
  out["connections"] = facts.connections;
  out["sums"] = sums_dict(facts.tensors);
  out["total_neurons"] = facts.total_neurons;
  out["total_synapses"] = facts.total_synapses;
  out["training_steps"] = facts.training_steps;
  out["timestamp"] = facts.timestamp;
  out["generation"] = facts.generation;
  out["file_uuid"] = facts.file_uuid;
  out["checksum_type"] = facts.checksum_type;
  out["checksum"] = facts.checksum;
  out["content_hash"] = facts.content_hash;
  out["delta_base"] = base_dict(facts.delta_base);
  out["warnings"] = text_list(facts.warnings);
  out["metadata_json"] = text_object(facts.metadata_json);
  out["growth_json"] = text_object(facts.growth_json);
  return out;
}

}  // namespace

void bind_info(nb::module_& module) {
  module.def("info", run_info, nb::arg("path"), nb::arg("access"));
}

}  // namespace thalia::python
