// Deltas: written against a base, and made full files again.
#include "thalia/state/delta.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/lora_adapter.h"
#include "thalia/formats/weight_delta.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Paths = std::vector<Path>;

DeltaResult run_delta(const Path& base, const Path& input, const Path& target, double threshold,
                      std::vector<std::string> exclude, const std::optional<Members>& low_rank,
                      bool pack, const std::string& access, Paths search, const Members& save) {
  DeltaOptions options{.loss = {.threshold = threshold, .exclude = std::move(exclude)},
                       .save = save_options(save),
                       .pack = pack};
  if (low_rank) options.loss.low_rank = low_rank_options(*low_rank);
  ChainOptions chain = chain_options(access, std::move(search), options.save.work.threads);
  return interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.save.work.cancel = stop;
    return write_delta(base, input, target, chain, options);
  });
}

ResolveResult run_resolve(const Path& delta, const Path& target, const std::string& access,
                          Paths search, const Members& save) {
  SaveOptions options = save_options(save);
  ChainOptions chain = chain_options(access, std::move(search), options.work.threads);
  return interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.work.cancel = stop;
    return resolve(delta, target, chain, options);
  });
}

RebaseResult run_rebase(const Paths& files, Paths others, unsigned max_depth, bool pack,
                        const std::string& access, Paths search, const Members& save) {
  RebaseOptions options{.save = save_options(save),
                        .others = std::move(others),
                        .max_depth = max_depth,
                        .pack = pack};
  options.chain = chain_options(access, std::move(search), options.save.work.threads);
  return interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    return rebase(files, options);
  });
}

// What leads from one model to another, in another program's form.
template <typename Result, typename Options>
Result write_between(Result (*write)(const Path&, const Path&, const Path&, const Options&),
                     const Path& base, const Path& input, const Path& target, Options options) {
  return interruptible([&](const std::stop_token& stop) {
    options.chain.read.work.cancel = stop;
    options.work.cancel = stop;
    return write(base, input, target, options);
  });
}

WeightDeltaResult run_weight_delta(const Path& base, const Path& input, const Path& target,
                                   const std::string& kind, std::string encoding,
                                   std::string checksum, const std::string& access, Paths search,
                                   const Members& save) {
  const SaveOptions saved = save_options(save);
  WeightDeltaOptions options{
      .kind = chosen<WeightDeltaKind>(
          "kind", kind, {{"slime", WeightDeltaKind::slime}, {"trl", WeightDeltaKind::trl}}),
      .encoding = std::move(encoding),
      .checksum = std::move(checksum),
      .chain = chain_options(access, std::move(search), saved.work.threads),
      .output = saved.output,
      .work = saved.work};
  return write_between(write_weight_delta, base, input, target, options);
}

LoraAdapterResult run_lora_adapter(const Path& base, const Path& input, const Path& target,
                                   std::uint32_t max_rank, double max_relative_error,
                                   bool leave_out, const std::string& access, Paths search,
                                   const Members& save) {
  const SaveOptions saved = save_options(save);
  LoraAdapterOptions options{.max_rank = max_rank,
                             .max_relative_error = max_relative_error,
                             .leave_out = leave_out,
                             .chain = chain_options(access, std::move(search), saved.work.threads),
                             .output = saved.output,
                             .work = saved.work};
  return write_between(write_lora_adapter, base, input, target, options);
}

void bind_delta_results(nb::module_& module) {
  bind_result<LowRankReport>(
      module, "LowRankMatrix", "What became of a matrix.", field("region", &LowRankReport::region),
      field("name", &LowRankReport::name), field("dtype", &LowRankReport::dtype),
      field("rows", &LowRankReport::rows), field("columns", &LowRankReport::columns),
      field("rank", &LowRankReport::rank, "Products that are stored."),
      field("bits", &LowRankReport::bits, "The size of a code, on average."),
      field("stored_bytes", &LowRankReport::stored_bytes),
      field("max_error", &LowRankReport::max_error), field("rms_error", &LowRankReport::rms_error),
      field("relative_error", &LowRankReport::relative_error,
            "Relative to the change: 0 where all of it comes back, 1 where nothing does."));
  bind_result<DeltaResult>(
      module, "DeltaResult",
      "What a delta stores.\n\n`same`, `steps`, `differences`, `lists`, `whole` and the length of "
      "`low_rank` add up to `tensors`.",
      field("file_bytes", &DeltaResult::file_bytes),
      field("base_bytes", &DeltaResult::base_bytes, "The size of the base's file."),
      field("logical_bytes", &DeltaResult::payload_bytes, "Bytes of the state's tensors."),
      field("depth", &DeltaResult::depth, "Deltas from here down to a full file."),
      field("regions", &DeltaResult::regions), field("tensors", &DeltaResult::tensors),
      field("same", &DeltaResult::same, "Tensors of which nothing is stored."),
      field("steps", &DeltaResult::steps,
            "Tensors of which it is stored by how many values each element moved."),
      field("differences", &DeltaResult::differences,
            "Tensors of which the bits that differ are stored."),
      field("lists", &DeltaResult::lists, "Tensors of which the elements that changed are stored."),
      field("whole", &DeltaResult::whole, "Tensors that are stored in full."),
      field("unlike", &DeltaResult::unlike,
            "Tensors among `whole` that the base has too, but in a shape, type or encoding that "
            "nothing can be taken from."),
      field("converted", &DeltaResult::converted,
            "Tensors that the base has in another floating point type."),
      field("packed", &DeltaResult::packed, "Whether the file is a packed delta."),
      field("listed_elements", &DeltaResult::listed_elements, "Elements of all lists."),
      field("low_rank", &DeltaResult::low_rank, "Matrices that were stored as products."),
      field("changed_regions", &DeltaResult::changed_regions),
      field("removed_regions", &DeltaResult::removed_regions,
            "Regions that the base has and the state does not."),
      field("closing_checksum", &DeltaResult::closing_checksum,
            "The file's identity, in hexadecimal."),
      field("seconds", &DeltaResult::seconds))
      .def_prop_ro("ratio", &DeltaResult::ratio, "Base to delta, in bytes.");
  bind_result<WeightDeltaResult>(
      module, "WeightDeltaResult", "What weight_delta() wrote.",
      field("version", &WeightDeltaResult::version), field("tensors", &WeightDeltaResult::tensors),
      field("changed_tensors", &WeightDeltaResult::changed_tensors),
      field("elements", &WeightDeltaResult::elements, "All that the model has; for slime, bytes."),
      field("changed_elements", &WeightDeltaResult::changed_elements, "The same."),
      field("base_bytes", &WeightDeltaResult::base_bytes, "Bytes of the model's elements."),
      field("file_bytes", &WeightDeltaResult::file_bytes, "Bytes of all files written."),
      field("seconds", &WeightDeltaResult::seconds));
  bind_result<LeftOutTensor>(module, "LeftOutTensor", "What changed, and an adapter cannot hold.",
                             field("name", &LeftOutTensor::name),
                             field("reason", &LeftOutTensor::reason));
  bind_result<LoraAdapterResult>(
      module, "LoraAdapterResult", "What lora_adapter() wrote.",
      field("tensors", &LoraAdapterResult::tensors, "All that the model has."),
      field("changed_tensors", &LoraAdapterResult::changed_tensors,
            "With those that are left out."),
      field("rank", &LoraAdapterResult::rank, "The highest of all matrices."),
      field("matrices", &LoraAdapterResult::matrices,
            "Errors are those of the change in float32, as the adapter adds it."),
      field("left_out", &LoraAdapterResult::left_out),
      field("base_bytes", &LoraAdapterResult::base_bytes, "Bytes of the model's elements."),
      field("file_bytes", &LoraAdapterResult::file_bytes, "Bytes of both files."),
      field("seconds", &LoraAdapterResult::seconds));
  bind_result<ResolveResult>(
      module, "ResolveResult", "What resolve() wrote.",
      field("input_bytes", &ResolveResult::input_bytes, "Bytes of all files of the chain."),
      field("output_bytes", &ResolveResult::output_bytes),
      field("depth", &ResolveResult::depth, "Deltas of the chain."),
      field("regions", &ResolveResult::regions), field("tensors", &ResolveResult::tensors),
      field("closing_checksum", &ResolveResult::closing_checksum,
            "The file's identity, in hexadecimal."),
      field("seconds", &ResolveResult::seconds));
  bind_result<RebasedFile>(
      module, "RebasedFile", "A file that took another form.", field("path", &RebasedFile::path),
      field("bytes_before", &RebasedFile::bytes_before), field("bytes", &RebasedFile::bytes),
      field("depth_before", &RebasedFile::depth_before, "Deltas down to a full file."),
      field("depth", &RebasedFile::depth, "The same, now; 0: it is full."));
  bind_result<RebaseResult>(
      module, "RebaseResult", "What rebase() wrote anew.",
      field("files", &RebaseResult::files, "In the order of their depths; none: nothing to do."),
      field("input_bytes", &RebaseResult::input_bytes, "Bytes of these files before."),
      field("output_bytes", &RebaseResult::output_bytes, "Bytes of them now."),
      field("seconds", &RebaseResult::seconds));
}

}  // namespace

void bind_delta(nb::module_& module) {
  bind_delta_results(module);
  module.def("delta", run_delta, nb::arg("base"), nb::arg("input"), nb::arg("target"),
             nb::arg("threshold"), nb::arg("exclude"), nb::arg("low_rank").none(), nb::arg("pack"),
             nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("weight_delta", run_weight_delta, nb::arg("base"), nb::arg("input"), nb::arg("target"),
             nb::arg("kind"), nb::arg("encoding"), nb::arg("checksum"), nb::arg("access"),
             nb::arg("search"), nb::arg("save"));
  module.def("lora_adapter", run_lora_adapter, nb::arg("base"), nb::arg("input"), nb::arg("target"),
             nb::arg("max_rank"), nb::arg("max_relative_error"), nb::arg("leave_out"),
             nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("resolve", run_resolve, nb::arg("delta"), nb::arg("target"), nb::arg("access"),
             nb::arg("search"), nb::arg("save"));
  module.def("rebase", run_rebase, nb::arg("files"), nb::arg("others"), nb::arg("max_depth"),
             nb::arg("pack"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
}

}  // namespace thalia::python
