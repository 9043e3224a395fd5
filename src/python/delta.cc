// Deltas: written against a base, and made full files again.
#include "thalia/state/delta.h"

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
#include "thalia/formats/resolved_file.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Paths = std::vector<Path>;

// The members of thalia_checkpoint.LowRank.
LowRankOptions low_rank_options(const nb::dict& members) {
  return {.bits_per_element = nb::cast<double>(members["bits_per_element"]),
          .max_rank = nb::cast<std::uint32_t>(members["max_rank"]),
          .max_relative_error = nb::cast<double>(members["max_relative_error"]),
          .include = nb::cast<std::vector<std::string>>(members["include"]),
          .min_elements = nb::cast<std::uint64_t>(members["min_elements"]),
          .max_generations = nb::cast<std::optional<std::uint16_t>>(members["max_generations"])};
}

Members low_rank_dict(const LowRankReport& matrix) {
  nb::dict out;
  out["region"] = text_object(matrix.region);
  out["name"] = text_object(matrix.name);
  out["dtype"] = dtype_name(matrix.dtype);
  out["rows"] = matrix.rows;
  out["columns"] = matrix.columns;
  out["rank"] = matrix.rank;
  out["bits"] = matrix.bits;
  out["stored_bytes"] = matrix.stored_bytes;
  out["max_error"] = matrix.max_error;
  out["rms_error"] = matrix.rms_error;
  out["relative_error"] = matrix.relative_error;
  return out;
}

Members result_of(const DeltaResult& result) {
  nb::list low_rank;
  for (const LowRankReport& matrix : result.low_rank) low_rank.append(low_rank_dict(matrix));
  nb::dict out;
  out["file_bytes"] = result.file_bytes;
  out["base_bytes"] = result.base_bytes;
  out["logical_bytes"] = result.payload_bytes;
  out["depth"] = result.depth;
  out["regions"] = result.regions;
  out["tensors"] = result.tensors;
  out["same"] = result.same;
  out["differences"] = result.differences;
  out["lists"] = result.lists;
  out["whole"] = result.whole;
  out["unlike"] = result.unlike;
  out["converted"] = result.converted;
  out["listed_elements"] = result.listed_elements;
  out["low_rank"] = low_rank;
  out["changed_regions"] = text_list(result.changed_regions);
  out["removed_regions"] = text_list(result.removed_regions);
  out["closing_checksum"] = hex(result.closing_checksum.bytes);
  out["seconds"] = result.seconds;
  return out;
}

Members run_delta(const Path& base, const Path& input, const Path& target, double threshold,
                   std::vector<std::string> exclude, const std::optional<Members>& low_rank,
                   const std::string& access, Paths search, const Members& save) {
  DeltaOptions options{
      .threshold = threshold, .exclude = std::move(exclude), .save = save_options(save)};
  if (low_rank) options.low_rank = low_rank_options(*low_rank);
  ChainOptions chain = chain_options(access, std::move(search), options.save.work.threads);
  return result_of(interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.save.work.cancel = stop;
    return write_delta(base, input, target, chain, options);
  }));
}

Members run_resolve(const Path& delta, const Path& target, const std::string& access, Paths search,
                    const Members& save) {
  SaveOptions options = save_options(save);
  ChainOptions chain = chain_options(access, std::move(search), options.work.threads);
  const ResolveResult result = interruptible([&](const std::stop_token& stop) {
    chain.read.work.cancel = stop;
    options.work.cancel = stop;
    return resolve(delta, target, chain, options);
  });
  nb::dict out = rewritten_dict(result);
  out["depth"] = result.depth;
  out["closing_checksum"] = hex(result.closing_checksum.bytes);
  return out;
}

}  // namespace

void bind_delta(nb::module_& module) {
  module.def("delta", run_delta, nb::arg("base"), nb::arg("input"), nb::arg("target"),
             nb::arg("threshold"), nb::arg("exclude"), nb::arg("low_rank").none(),
             nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("resolve", run_resolve, nb::arg("delta"), nb::arg("target"), nb::arg("access"),
             nb::arg("search"), nb::arg("save"));
}

}  // namespace thalia::python
