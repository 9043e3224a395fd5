// What differs between two checkpoints.
#include "thalia/state/diff.h"

#include <cstdint>
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
#include "python/results.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

// A side of a field, which is a JSON text, empty if there is none.
ObjectLike<nb::any> of_json(const std::string& text) {
  if (text.empty()) return nb::object(nb::none());
  return nb::object(nb::module_::import_("json").attr("loads")(text));
}

class Part : public nb::object {
 public:
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name =
      nb::detail::const_name("typing.Literal['dtype', 'shape', 'role', 'encoding', 'content']");
};

TupleWith<Part, nb::ellipsis> differing_of(const TensorDiff& tensor) {
  nb::list out;
  if (tensor.change == Change::changed) {
    if (tensor.dtype_changed()) out.append("dtype");
    if (tensor.shape_changed()) out.append("shape");
    if (tensor.role_changed()) out.append("role");
    if (tensor.encoding_changed()) out.append("encoding");
    if (tensor.content_changed()) out.append("content");
  }
  return nb::tuple(out);
}

std::optional<std::uint64_t> nnz_of(const TensorFacts& facts) {
  if (is_sparse(facts.layout.encoding)) return facts.layout.nnz;
  return std::nullopt;
}

inspect::FilesDiff run_diff(const Path& before, const Path& after, bool values,
                            std::vector<std::string> tensors, double atol, double rtol,
                            const std::string& access, std::vector<Path> search, bool legacy,
                            unsigned threads, ProgressCallback progress) {
  ChainOptions chain = chain_options(access, std::move(search), threads, legacy);
  DiffOptions options{.values = values,
                      .tensors = std::move(tensors),
                      .absolute_tolerance = atol,
                      .relative_tolerance = rtol,
                      .input = chain.read.input,
                      .work = {.threads = threads, .progress = progress_of(std::move(progress))}};
  return interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.work.cancel = stop;
    return inspect::diff_files(before, after, chain, options);
  });
}

void bind_tensor_diff(nb::module_& module) {
  bind_result<TensorFacts>(
      module, "TensorFacts", "What a file says of a tensor.",
      field(
          "dtype", [](auto& facts) -> auto& { return facts.layout.dtype; }),
      field(
          "shape", [](auto& facts) -> auto& { return facts.layout.shape; }),
      field("role", &TensorFacts::role),
      field(
          "encoding", [](auto& facts) -> auto& { return facts.layout.encoding; },
          "\"dense\", \"csr\", \"coo\", …"),
      hidden([](auto& facts) -> auto& { return facts.layout.nnz; }),
      computed("nnz", nnz_of, "Stored elements of csr and coo; None of other encodings."),
      field(
          "wide_indices", [](auto& facts) -> auto& { return facts.layout.wide_indices; },
          "Indices of csr and coo are of 64 bits."),
      field("logical_bytes", &TensorFacts::logical_bytes),
      hidden([](auto& facts) -> auto& { return facts.content_hash; }),
      field("restored", &TensorFacts::restored,
            "The file has codes, and these facts describe the elements restored from them."));
  bind_result<ValueDiff>(
      module, "ValueDiff",
      "How the elements of two tensors differ.\n\nComplex numbers differ by a magnitude, sparse "
      "tensors have zeros where they store nothing, and quantized ones are restored. NaN is the "
      "same as a NaN of the same bits, and -0 is 0.",
      field("skipped", &ValueDiff::skipped, "Why nothing was compared; empty if it was."),
      field("compared", &ValueDiff::compared,
            "The shape, or if shapes differ their common corner."),
      field("elements", &ValueDiff::elements, "Elements that were compared."),
      field("differing", &ValueDiff::differing, "Elements that differ by more than the tolerance."),
      field("not_finite", &ValueDiff::not_finite,
            "Elements among `differing` whose difference is not a finite number."),
      field("max_difference", &ValueDiff::max_difference,
            "The largest one of the others, absolute."),
      field("rms_difference", &ValueDiff::rms_difference,
            "The root of the mean square over all elements but the not finite."),
      field("relative_difference", &ValueDiff::relative_difference,
            "The norm of the difference over that of the tensor before; None if that is 0."),
      field("cosine", &ValueDiff::cosine,
            "The cosine of the angle between both as vectors; None if one is all zeros."));
  bind_result<TensorDiff>(
      module, "TensorDiff", "A tensor that one file has, or that is not the same in both.",
      field("name", &TensorDiff::name, "A connection's matrix: \"weights\" or \"delays\"."),
      field("change", &TensorDiff::change),
      computed("differing", differing_of, "In what a changed one differs."),
      field("before", &TensorDiff::before), field("after", &TensorDiff::after),
      field(
          "values", &TensorDiff::values,
          "How the elements of a changed tensor differ, if values or a tolerance were asked for."));
}

void bind_file_diff(nb::module_& module) {
  bind_result<FieldDiff>(
      module, "FieldDiff", "A number, a text or a member of a JSON object that differs.",
      field("field", &FieldDiff::field,
            "The key; for a member of a member, the keys with dots between them: "
            "\"training.step\"."),
      computed("change", &FieldDiff::change),
      field("before", &FieldDiff::before, "As the JSON text says; None if it was added.", of_json),
      field("after", &FieldDiff::after, "The same; None if it was removed.", of_json));
  bind_tensor_diff(module);
  bind_result<RegionDiff>(
      module, "RegionDiff", "A region that one file has, or that is not the same in both.",
      field("name", &RegionDiff::name), field("change", &RegionDiff::change),
      field("facts", &RegionDiff::facts), field("config", &RegionDiff::config),
      field("metadata", &RegionDiff::metadata), field("tensors", &RegionDiff::tensors, "By name."),
      field("tensor_count", &RegionDiff::tensor_count, "That one side or both have."),
      field("logical_bytes", &RegionDiff::logical_bytes,
            "From the side that has it, or from the later one."));
  bind_result<ConnectionDiff>(
      module, "ConnectionDiff", "A connection that one file has, or that is not the same in both.",
      field("source", &ConnectionDiff::source), field("target", &ConnectionDiff::target),
      field("change", &ConnectionDiff::change), field("matrices", &ConnectionDiff::matrices));
  using Files = inspect::FilesDiff;
  bind_result<Files>(
      module, "Diff", "What differs between two checkpoints. Truthy if anything differs.",
      field(
          "header", [](auto& files) -> auto& { return files.diff.header; }),
      field(
          "storage", [](auto& files) -> auto& { return files.diff.storage; },
          "What two saves of one state differ in, such as the timestamp: no difference by itself."),
      field(
          "metadata", [](auto& files) -> auto& { return files.diff.metadata; }),
      field(
          "regions", [](auto& files) -> auto& { return files.diff.regions; },
          "In the order of the earlier file, then those added."),
      field(
          "connections", [](auto& files) -> auto& { return files.diff.connections; }),
      field(
          "tensors", [](auto& files) -> auto& { return files.diff.tensors; },
          "Where one file has another format: tensors by their names, and nothing of regions."),
      field(
          "same_regions", [](auto& files) -> auto& { return files.diff.same_regions; }),
      field(
          "same_connections", [](auto& files) -> auto& { return files.diff.same_connections; }),
      field(
          "same_tensors", [](auto& files) -> auto& { return files.diff.same_tensors; },
          "That `tensors` might have had."),
      field("metadata_compared", &Files::metadata_compared,
            "False with patterns, and for two formats, which lay metadata out in different ways."),
      field("ambiguous_tensors", &Files::ambiguous,
            "That several names of the other file may belong to: paired with none of them."))
      .def_prop_ro(
          "same", [](const Files& files) { return files.diff.same(); },
          "Nothing differs but the storage.")
      .def("__bool__", [](const Files& files) { return !files.diff.same(); });
}

}  // namespace

void bind_diff(nb::module_& module) {
  bind_file_diff(module);
  module.def("diff", run_diff, nb::arg("before"), nb::arg("after"), nb::arg("values"),
             nb::arg("tensors"), nb::arg("atol"), nb::arg("rtol"), nb::arg("access"),
             nb::arg("search"), nb::arg("legacy"), nb::arg("threads"), nb::arg("progress").none());
}

}  // namespace thalia::python
