// What differs between two checkpoints.
#include "thalia/state/diff.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "inspect/diff_files.h"
#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

template <typename T, typename ToDict>
nb::list list_of(const std::vector<T>& all, const ToDict& to_dict) {
  nb::list list;
  for (const T& one : all) list.append(to_dict(one));
  return list;
}

// Both sides as JSON texts, empty where there is none.
Members field_dict(const FieldDiff& field) {
  nb::dict out;
  out["field"] = text_object(field.field);
  out["change"] = change_name(field.change());
  out["before"] = text_object(field.before);
  out["after"] = text_object(field.after);
  return out;
}

nb::object facts_dict(const std::optional<TensorFacts>& facts) {
  if (!facts) return nb::none();
  nb::dict out;
  out["dtype"] = dtype_name(facts->layout.dtype);
  out["shape"] = shape_tuple(facts->layout.shape);
  out["role"] = facts->role ? nb::cast(role_name(*facts->role)) : nb::none();
  out["encoding"] = encoding_name(facts->layout.encoding);
  out["nnz"] = is_sparse(facts->layout.encoding) ? nb::cast(facts->layout.nnz) : nb::none();
  out["wide_indices"] = facts->layout.wide_indices;
  out["logical_bytes"] = facts->logical_bytes;
  out["restored"] = facts->restored;
  return out;
}

nb::object values_dict(const std::optional<ValueDiff>& values) {
  if (!values) return nb::none();
  nb::dict out;
  out["skipped"] = text_object(values->skipped);
  out["compared"] = shape_tuple(values->compared);
  out["elements"] = values->elements;
  out["differing"] = values->differing;
  out["not_finite"] = values->not_finite;
  out["max_difference"] = values->max_difference;
  out["rms_difference"] = values->rms_difference;
  out["relative_difference"] = values->relative_difference;
  out["cosine"] = values->cosine;
  return out;
}

nb::list differing_of(const TensorDiff& tensor) {
  nb::list out;
  if (tensor.change != Change::changed) return out;
  if (tensor.dtype_changed()) out.append("dtype");
  if (tensor.shape_changed()) out.append("shape");
  if (tensor.role_changed()) out.append("role");
  if (tensor.encoding_changed()) out.append("encoding");
  if (tensor.content_changed()) out.append("content");
  return out;
}

Members tensor_diff_dict(const TensorDiff& tensor) {
  nb::dict out;
  out["name"] = text_object(tensor.name);
  out["change"] = change_name(tensor.change);
  out["differing"] = differing_of(tensor);
  out["before"] = facts_dict(tensor.before);
  out["after"] = facts_dict(tensor.after);
  out["values"] = values_dict(tensor.values);
  return out;
}

Members region_diff_dict(const RegionDiff& region) {
  nb::dict out;
  out["name"] = text_object(region.name);
  out["change"] = change_name(region.change);
  out["facts"] = list_of(region.facts, field_dict);
  out["config"] = list_of(region.config, field_dict);
  out["metadata"] = list_of(region.metadata, field_dict);
  out["tensors"] = list_of(region.tensors, tensor_diff_dict);
  out["tensor_count"] = region.tensor_count;
  out["logical_bytes"] = region.logical_bytes;
  return out;
}

Members connection_dict(const ConnectionDiff& connection) {
  nb::dict out;
  out["source"] = text_object(connection.source);
  out["target"] = text_object(connection.target);
  out["change"] = change_name(connection.change);
  out["matrices"] = list_of(connection.matrices, tensor_diff_dict);
  return out;
}

Members diff_dict(const Diff& diff) {
  nb::dict out;
  out["header"] = list_of(diff.header, field_dict);
  out["storage"] = list_of(diff.storage, field_dict);
  out["metadata"] = list_of(diff.metadata, field_dict);
  out["regions"] = list_of(diff.regions, region_diff_dict);
  out["connections"] = list_of(diff.connections, connection_dict);
  out["tensors"] = list_of(diff.tensors, tensor_diff_dict);
  out["same_regions"] = diff.same_regions;
  out["same_connections"] = diff.same_connections;
  out["same_tensors"] = diff.same_tensors;
  return out;
}

Members files_dict(const inspect::FilesDiff& files) {
  nb::dict out = diff_dict(files.diff);
  out["metadata_compared"] = files.metadata_compared;
  out["ambiguous_tensors"] = files.ambiguous;
  return out;
}

Members run_diff(const Path& before, const Path& after, bool values,
                 std::vector<std::string> tensors, double atol, double rtol,
                 const std::string& access, std::vector<Path> search, bool legacy, unsigned threads,
                 ProgressCallback progress) {
  ChainOptions chain = chain_options(access, std::move(search), threads, legacy);
  DiffOptions options{.values = values,
                      .tensors = std::move(tensors),
                      .absolute_tolerance = atol,
                      .relative_tolerance = rtol,
                      .input = chain.read.input,
                      .work = {.threads = threads, .progress = progress_of(std::move(progress))}};
  return files_dict(interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.work.cancel = stop;
    return inspect::diff_files(before, after, chain, options);
  }));
}

}  // namespace

void bind_diff(nb::module_& module) {
  module.def("diff", run_diff, nb::arg("before"), nb::arg("after"), nb::arg("values"),
             nb::arg("tensors"), nb::arg("atol"), nb::arg("rtol"), nb::arg("access"),
             nb::arg("search"), nb::arg("legacy"), nb::arg("threads"), nb::arg("progress").none());
}

}  // namespace thalia::python
