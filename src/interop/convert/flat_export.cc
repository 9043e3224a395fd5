// Plans a file without regions: which name and dtype each tensor gets, and what the other format
// has no place for. After plan_flat_export() all names are different, each tensor can be stored,
// and the losses are complete; nothing has been written. The three lists of FlatExport run in
// parallel.
#include "interop/convert/flat_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "interop/convert/conversions.h"
#include "interop/convert/payload_pieces.h"
#include "interop/safetensors/parse.h"
#include "interop/shared/dtype_names.h"
#include "interop/shared/list_names.h"
#include "json/reader.h"
#include "thalia/error.h"
#include "thalia/tensor_role.h"

namespace thalia::interop {
namespace {

// Both formats hold dense tensors only; a quantized one is restored on the way.
void check_tensor(FileFormat to, std::string_view region, const TensorView& view, bool dense) {
  const auto refuse = [&](std::string_view field, std::string_view value, std::string bound) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           fmt::format("{} has no such {}", file_format_name(to), field),
                           {.field = std::string(field),
                            .region = printable(region),
                            .tensor = printable(view.name()),
                            .value = std::string(value),
                            .bound = std::move(bound)});
  };
  if (is_sparse(view.encoding()) && !dense)
    refuse("encoding", encoding_name(view.encoding()), "dense, or the option dense (--dense)");
  if (!is_sparse(view.encoding()) && view.encoding() > Encoding::quantized)
    refuse("encoding", encoding_name(view.encoding()), "the state of the delta");
  if (to == FileFormat::safetensors && safetensors_dtype_name(view.dtype()).empty())
    refuse("dtype", dtype_name(view.dtype()), "a type of safetensors");
}

void add(FlatExport& out, FileFormat to, std::string_view region, std::string name, DType dtype,
         TensorView view, bool dense) {
  check_tensor(to, region, view, dense);
  out.tensors.push_back(
      {.name = std::move(name), .dtype = dtype, .shape = view.shape(), .bytes = {}});
  out.views.push_back(std::move(view));
  out.regions.emplace_back(region);
}

// A tensor keeps its name where no other region has one like it. Otherwise the region's name is put
// in front, for all of the namesakes, so that no name depends on the order of regions.
void resolve_names(FlatExport& out, FileFormat to, std::vector<std::string>& losses) {
  std::unordered_map<std::string_view, unsigned> uses;
  for (const TensorView& view : out.views) ++uses[view.name()];
  std::vector<std::string> renamed;
  for (std::size_t i = 0; i < out.tensors.size(); ++i) {
    SafetensorsTensor& tensor = out.tensors[i];
    if (out.regions[i].empty() || uses[out.views[i].name()] == 1) continue;
    tensor.name = fmt::format("{}.{}", out.regions[i], tensor.name);
    renamed.push_back(tensor.name);
  }
  if (!renamed.empty()) {
    losses.push_back(
        fmt::format("tensors of one name in several regions are renamed to REGION.NAME: {}",
                    list_names(renamed)));
  }
  // The name that was made up may itself belong to another tensor.
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < out.tensors.size(); ++i) {
    const std::string& name = out.tensors[i].name;
    const bool repeated = !names.insert(name).second;
    const bool reserved = to == FileFormat::safetensors && name == kSafetensorsMetadataKey;
    if (!repeated && !reserved) continue;
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        repeated ? fmt::format("another tensor has this name in the {} file", file_format_name(to))
                 : "safetensors keeps this name for itself",
        {.field = "name", .region = printable(out.regions[i]), .tensor = printable(name)});
  }
}

void add_connections(const Reader& reader, FileFormat to, bool dense, PrecisionRun& precision,
                     FlatExport& out, std::vector<std::string>& losses) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    ConnectionView connection = reader.connection(i);
    names.push_back(fmt::format("{}->{}", connection.source, connection.target));
    const auto add_matrix = [&](std::string_view matrix, TensorView& view) {
      const DType dtype = precision.choose(connection, matrix, dense_spec_of(view));
      // Connections have no region: their names are made here and never get a prefix.
      add(out, to, "", fmt::format("{}.{}", names.back(), matrix), dtype, std::move(view), dense);
    };
    add_matrix("weights", connection.weights);
    if (connection.delays) add_matrix("delays", *connection.delays);
  }
  if (!names.empty()) {
    losses.push_back(fmt::format(
        "connections become tensors with nothing to tell them from others: {}", list_names(names)));
  }
}

// An empty config holds nothing to lose.
bool is_empty_object(std::string_view text, unsigned max_depth) {
  bool empty = true;
  json::walk_object(text, max_depth, [&](std::string_view, json::Value&) { empty = false; });
  return empty;
}

// Losses of regions and of their tensors' roles.
void list_region_losses(const Reader& reader, const ConvertOptions& options,
                        std::vector<std::string>& losses) {
  std::vector<std::string> configs, metadata, populations, empty, regrouped, homeostatic;
  std::array<std::vector<std::string>, kRoleCount> roles;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    const std::string name(region.name());
    if (!is_empty_object(region.config_json(), options.read.input.limits.max_json_depth)) {
      configs.push_back(name);
    }
    if (!region.metadata_json().empty()) metadata.push_back(name);
    if (region.n_neurons() != 0 || region.n_inputs() != 0 ||
        region.neuron_type() != NeuronType::none) {
      populations.push_back(name);
    }
    if (region.homeostatic_updated().value_or(0) != 0) homeostatic.push_back(name);
    if (region.tensor_count() == 0) empty.push_back(name);
    bool told = true;
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      // The way back groups tensors by their names: a region is no loss where that finds it again.
      told = told && region_for_name(tensor.name(), options.grouping) == name;
      const unsigned rank = tensor.shape().rank();
      if (likely_role(tensor.role(), tensor.name(), rank) != role_of_name(tensor.name(), rank)) {
        roles[static_cast<std::size_t>(tensor.role())].push_back(name + "/" +
                                                                 std::string(tensor.name()));
      }
    }
    if (!told) regrouped.push_back(name);
  }
  const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) losses.push_back(fmt::format("{}: {}", what, list_names(names)));
  };
  list("config of regions", configs);
  list("metadata of regions", metadata);
  list("neurons, inputs and neuron type of regions", populations);
  list("time of the last homeostatic update of regions", homeostatic);
  list("regions without tensors", empty);
  list("regions that their tensors' names do not tell", regrouped);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    list(fmt::format("role {} of tensors, which their names do not tell",
                     role_name(static_cast<Role>(i))),
         roles[i]);
  }
}

}  // namespace

TensorSpec dense_spec_of(const TensorView& view) {
  return {.name = std::string(view.name()),
          .dtype = view.dtype(),
          .shape = view.shape(),
          .role = view.role()};
}

FlatExport plan_flat_export(const Reader& reader, FileFormat to, const ConvertOptions& options,
                            PrecisionRun& precision, std::vector<std::string>& losses) {
  FlatExport out;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      TensorView tensor = region.tensor(t);
      std::string name(tensor.name());
      const DType dtype = precision.choose(region.name(), dense_spec_of(tensor));
      add(out, to, region.name(), std::move(name), dtype, std::move(tensor), options.dense);
    }
  }
  add_connections(reader, to, options.dense, precision, out, losses);
  precision.check_patterns();
  resolve_names(out, to, losses);
  list_region_losses(reader, options, losses);
  return out;
}

}  // namespace thalia::interop
