// Tensors of files of every format on demand, a part of them kept.
#include "thalia/formats/param_source.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/any_file.h"
#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/sparse_arrays.h"
#include "python/text.h"
#include "thalia/formats/any_file.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

ParamSource open_params(const OpenedAny& opened, std::optional<std::uint64_t> budget_bytes,
                        std::optional<double> budget_share,
                        std::optional<std::uint64_t> budget_cap_bytes,
                        std::uint64_t prefetch_layers, std::optional<std::uint64_t> small_bytes) {
  const Unlocked unlocked;
  return stream_params(opened.file, {.budget_bytes = budget_bytes,
                                     .budget_share = budget_share,
                                     .budget_cap_bytes = budget_cap_bytes,
                                     .prefetch_layers = prefetch_layers,
                                     .small_bytes = small_bytes});
}

// In the order of the file: a dict each.
nb::list params_of(const ParamSource& source) {
  nb::list out;
  for (const ParamInfo& param : source.params()) {
    nb::dict facts;
    facts["name"] = text_object(param.name);
    facts["dtype"] = dtype_name(param.layout.dtype);
    facts["shape"] = shape_tuple(param.layout.shape);
    facts["encoding"] = encoding_name(param.layout.encoding);
    facts["wide_indices"] = param.layout.wide_indices;
    facts["nbytes"] = param.bytes;
    facts["stored_bytes"] = param.stored_bytes;
    facts["id"] = param.id ? text_object(param.id->to_string()) : nb::none();
    facts["layer"] = param.layer;
    facts["pinned"] = param.pinned;
    out.append(facts);
  }
  return out;
}

// Its bytes, or of a sparse one its arrays.
std::vector<Payload> load(const ParamSource& source, const std::string& name) {
  const Unlocked unlocked;
  const auto tensor = std::make_shared<const Tensor>(source.load(name));
  if (tensor->is_dense()) return {Payload(tensor->bytes(), tensor)};
  return arrays_of(tensor->encoding(), tensor, *tensor);
}

void prefetch(const ParamSource& source, unsigned threads) {
  interruptible(
      [&](const std::stop_token& stop) { source.prefetch({.threads = threads, .cancel = stop}); });
}

nb::dict statistics(const ParamSource& source) {
  const ParamStatistics statistics = source.statistics();
  nb::dict out;
  out["hits"] = statistics.hits;
  out["misses"] = statistics.misses;
  out["loaded_bytes"] = statistics.loaded_bytes;
  out["evictions"] = statistics.evictions;
  out["resident_tensors"] = statistics.resident_tensors;
  out["resident_bytes"] = statistics.resident_bytes;
  out["pinned_bytes"] = statistics.pinned_bytes;
  return out;
}

}  // namespace

void bind_param_source(nb::module_& module) {
  nb::class_<ParamSource>(module, "ParamSource")
      .def_static("open", open_params, nb::arg("file"), nb::arg("budget_bytes").none(),
                  nb::arg("budget_share").none(), nb::arg("budget_cap_bytes").none(),
                  nb::arg("prefetch_layers"), nb::arg("small_bytes").none())
      .def_prop_ro("params", params_of)
      .def_prop_ro("total_bytes", &ParamSource::total_bytes)
      .def_prop_ro("budget_bytes", &ParamSource::budget_bytes)
      .def("load", load, nb::arg("name"))
      .def("prefetch", prefetch, nb::arg("threads"))
      .def_prop_ro("statistics", statistics);
}

}  // namespace thalia::python
