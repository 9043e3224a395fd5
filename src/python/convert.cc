// Whole files anew: other formats, some regions, several in one, another version.
#include "thalia/formats/convert.h"

#include <optional>
#include <string>
#include <string_view>
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
#include "thalia/error.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Paths = std::vector<Path>;

std::optional<FileFormat> file_format(const char* argument,
                                      const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (const auto format = file_format_from_name(*name)) return format;
  std::string names;
  for (const FileFormat format : file_formats()) {
    if (!names.empty()) names += ", ";
    names += file_format_name(format);
  }
  fail_choice(argument, *name, names);
}

// `depth` counts of kind "depth".
RegionGrouping grouping_of(const std::string& kind, unsigned depth) {
  using Kind = RegionGrouping::Kind;
  if (kind == "auto") return {Kind::automatic};
  if (kind == "none") return {Kind::none};
  if (kind == "depth" && depth > 0) return {Kind::depth, depth};
  fail_choice("grouping", kind, "auto, none, a number of name parts from 1");
}

// The library does not know the argument's name.
PrecisionPolicy precision_of(const std::string& text) {
  try {
    return parse_precision_policy(text);
  } catch (const UsageError& error) {
    ErrorContext context = error.context();
    context.field = "precision";
    throw UsageError(error.code(), error.message(), std::move(context));
  }
}

// `number` counts of kind "input".
MergePreference preference_of(const std::string& kind, std::size_t number) {
  using Kind = MergePreference::Kind;
  if (kind == "none") return {};
  if (kind == "first") return {.kind = Kind::first};
  if (kind == "last") return {.kind = Kind::last};
  if (kind == "input") return {.kind = Kind::input, .number = number};
  fail_choice("prefer", kind, "first, last, one of the files that are merged");
}

Members numbers_dict(const RoundedNumbers& numbers) {
  nb::dict out;
  out["count"] = numbers.count;
  out["worst_tensor"] = text_object(numbers.worst);
  out["worst_count"] = numbers.worst_count;
  return out;
}

Members rounding_dict(const RoundingLoss& rounding) {
  nb::dict out;
  out["largest_error"] = rounding.largest_error;
  out["largest_error_tensor"] = text_object(rounding.largest_error_tensor);
  out["zero"] = numbers_dict(rounding.zeroed);
  out["subnormal"] = numbers_dict(rounding.subnormal);
  out["infinite"] = numbers_dict(rounding.infinite);
  out["nan"] = numbers_dict(rounding.nan);
  return out;
}

ConvertOptions convert_options(const Members& save, const std::string& access, Paths search) {
  ConvertOptions options;
  options.save = save_options(save);
  options.chain.read = read_options(access, "on_first_touch", options.save.work.threads);
  options.chain.search = std::move(search);
  return options;
}

// What run(options) did.
template <typename Run>
Members converted(ConvertOptions& options, const Run& run) {
  const ConvertResult result = interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    options.chain.read.work.cancel = stop;
    return run(options);
  });
  nb::dict types;
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    const PrecisionStatistics::Share& share = result.precision.share(kind);
    if (share.count == 0) continue;
    types[precision_kind_name(kind).data()] = nb::make_tuple(share.count, share.bytes);
  }
  nb::dict out;
  out["input_bytes"] = result.input_bytes;
  out["output_bytes"] = result.output_bytes;
  out["tensors"] = result.tensors;
  out["losses"] = text_list(result.losses);
  out["warnings"] = text_list(result.warnings);
  out["types"] = types;
  out["converted_tensors"] = result.converted_tensors;
  out["rounding"] = rounding_dict(result.rounding);
  out["seconds"] = result.seconds;
  return out;
}

Members run_convert(const Path& path, const Path& target, const std::optional<std::string>& from,
                    const std::optional<std::string>& to, const std::string& grouping,
                    unsigned depth, const std::string& precision, const Members& kept,
                    const std::string& access, Paths search, const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  options.from = file_format("from_", from);
  options.to = file_format("to", to);
  options.grouping = grouping_of(grouping, depth);
  options.precision = precision_of(precision);
  options.dense = nb::cast<bool>(kept["dense"]);
  options.dequantize = nb::cast<bool>(kept["dequantize"]);
  options.chain.read.input.legacy = nb::cast<bool>(kept["legacy"]);
  options.all_types = nb::cast<bool>(kept["all_types"]);
  options.shard_bytes = nb::cast<std::optional<std::uint64_t>>(kept["shard_bytes"]);
  if (nb::cast<bool>(kept["lossless"])) {
    options.on_losses = [&](const std::vector<std::string>& losses) {
      throw UnsupportedError(
          ErrorCode::unsupported_feature,
          "the output cannot hold all of this, and lossless asks for it",
          {.path = path.string(), .field = "losses", .value = losses.front(), .bound = "none"});
    };
  }
  return converted(options, [&](const ConvertOptions& all) { return convert(path, target, all); });
}

Members run_extract(const Path& path, const std::vector<std::string>& regions, const Path& target,
                    const std::string& access, Paths search, const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  return converted(options,
                   [&](const ConvertOptions& all) { return extract(path, regions, target, all); });
}

Members run_merge(const Paths& inputs, const Path& target, const std::string& prefer,
                  std::size_t number, const std::string& access, Paths search,
                  const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  const MergePreference preference = preference_of(prefer, number);
  return converted(
      options, [&](const ConvertOptions& all) { return merge(inputs, target, preference, all); });
}

Members run_migrate(const Path& path, const Path& target, const std::string& to, bool across_major,
                    const std::string& access, Paths search, const Members& save) {
  const auto version = parse_format_version(to);
  if (!version) fail_choice("to", to, "a version: 0.1 or 1.0");
  MigrateOptions options{.across_major = across_major, .chain = {.search = std::move(search)}};
  options.save = save_options(save);
  options.chain.read = read_options(access, "on_first_touch", options.save.work.threads);
  const MigrateResult result = interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    options.chain.read.work.cancel = stop;
    return migrate(path, target, *version, options);
  });
  nb::dict out;
  out["from_"] = result.from.to_string();
  out["to"] = result.to.to_string();
  out["losses"] = text_list(result.losses);
  out["warnings"] = text_list(result.warnings);
  out["tensors"] = result.tensors;
  out["input_bytes"] = result.input_bytes;
  out["output_bytes"] = result.output_bytes;
  out["seconds"] = result.seconds;
  return out;
}

}  // namespace

void bind_convert(nb::module_& module) {
  module.def("convert", run_convert, nb::arg("path"), nb::arg("target"), nb::arg("from_").none(),
             nb::arg("to").none(), nb::arg("grouping"), nb::arg("depth"), nb::arg("precision"),
             nb::arg("kept"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("extract", run_extract, nb::arg("path"), nb::arg("regions"), nb::arg("target"),
             nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("merge", run_merge, nb::arg("inputs"), nb::arg("target"), nb::arg("prefer"),
             nb::arg("number"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("migrate", run_migrate, nb::arg("path"), nb::arg("target"), nb::arg("to"),
             nb::arg("across_major"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
}

}  // namespace thalia::python
