// Whole files anew: other formats, some regions, several in one, another version.
#include "thalia/formats/convert.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "python/value.h"
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

// What a conversion did, with the tensors of each type that its output has.
struct Converted : ConvertResult {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> types{};
};

ConvertOptions convert_options(const Members& save, const std::string& access, Paths search) {
  ConvertOptions options;
  options.save = save_options(save);
  options.chain.read = read_options(access, "on_first_touch", options.save.work.threads);
  options.chain.search = std::move(search);
  return options;
}

// What run(options) did.
template <typename Run>
Converted converted(ConvertOptions& options, const Run& run) {
  Converted out{interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    options.chain.read.work.cancel = stop;
    return run(options);
  })};
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    const PrecisionStatistics::Share& share = out.precision.share(kind);
    if (share.count == 0) continue;
    out.types[std::string(precision_kind_name(kind))] = {share.count, share.bytes};
  }
  return out;
}

Converted run_convert(const Path& path, const Path& target, const std::optional<std::string>& from,
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

Converted run_extract(const Path& path, const std::vector<std::string>& regions, const Path& target,
                      const std::string& access, Paths search, const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  return converted(options,
                   [&](const ConvertOptions& all) { return extract(path, regions, target, all); });
}

Converted run_extract_brain(const Path& path, const std::string& prefix, const Path& target,
                            const std::string& access, Paths search, const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  return converted(
      options, [&](const ConvertOptions& all) { return extract_brain(path, prefix, target, all); });
}

// `metadata`: a dictionary, or None.
Converted run_merge(const Paths& inputs, const Path& target, const std::string& prefer,
                    std::size_t number, std::vector<std::string> prefixes, nb::handle metadata,
                    const std::string& access, Paths search, const Members& save) {
  ConvertOptions options = convert_options(save, access, std::move(search));
  MergeOptions merging{.preference = preference_of(prefer, number),
                       .prefixes = std::move(prefixes)};
  if (!metadata.is_none()) {
    std::vector<HeldBuffer> none;
    merging.metadata_json = to_json(value_of(metadata, none));
  }
  return converted(options,
                   [&](const ConvertOptions& all) { return merge(inputs, target, merging, all); });
}

FormatVersion version_named(const char* argument, const std::string& text) {
  if (const auto version = parse_format_version(text)) return *version;
  fail_choice(argument, text, "a version, such as 0.1 or 1.0");
}

MigrateResult run_migrate(const Path& path, const Path& target, const std::string& to,
                          bool across_major, const std::string& access, Paths search,
                          const Members& save) {
  const FormatVersion version = version_named("to", to);
  MigrateOptions options{.across_major = across_major, .chain = {.search = std::move(search)}};
  options.save = save_options(save);
  options.chain.read = read_options(access, "on_first_touch", options.save.work.threads);
  return interruptible([&](const std::stop_token& stop) {
    options.save.work.cancel = stop;
    options.chain.read.work.cancel = stop;
    return migrate(path, target, version, options);
  });
}

Migration run_can_migrate(const std::string& from, const std::string& to) {
  return can_migrate(version_named("from_version", from), version_named("to_version", to));
}

void bind_convert_results(nb::module_& module) {
  bind_result<Migration>(
      module, "Migration", "Whether files of one version of the format become files of another.",
      field("possible", &Migration::possible),
      field("lossy", &Migration::lossy,
            "The target has no place for some of what a source may hold."),
      field("automatic", &Migration::automatic,
            "Nobody has to ask for it beyond naming the target; else with across_major."),
      field("reason", &Migration::reason, "One sentence."));
  bind_result<RoundedNumbers>(
      module, "RoundedNumbers", "Numbers that a conversion of types made something else of.",
      field("count", &RoundedNumbers::count),
      field("worst_tensor", &RoundedNumbers::worst,
            "That has most of them, REGION/NAME; empty if there are none."),
      field("worst_count", &RoundedNumbers::worst_count, "The number of them in that tensor."));
  bind_result<RoundingLoss>(
      module, "Rounding", "What conversions to other floating point types cost, over all tensors.",
      field("largest_error", &RoundingLoss::largest_error,
            "The largest absolute error of numbers that stayed finite."),
      field("largest_error_tensor", &RoundingLoss::largest_error_tensor,
            "Where that is; empty if nothing was rounded."),
      field("zero", &RoundingLoss::zeroed, "Numbers that became zero, and were not zero before."),
      field("subnormal", &RoundingLoss::subnormal), field("infinite", &RoundingLoss::infinite),
      field("nan", &RoundingLoss::nan));
  bind_result<Converted>(
      module, "ConvertResult", "What convert(), extract() or merge() wrote.",
      field("input_bytes", &Converted::input_bytes, "Bytes of all inputs on disk."),
      field("output_bytes", &Converted::output_bytes), field("tensors", &Converted::tensors),
      field("losses", &Converted::losses, "What the output cannot hold, a sentence each."),
      field("warnings", &Converted::warnings,
            "What was done otherwise than asked for, a sentence each. Each is also a "
            "UserWarning."),
      field("types", &Converted::types,
            "Tensors and bytes of \"fp32\", \"fp16\", \"bf16\", \"fp64\", \"int\" and "
            "\"other\" that there are."),
      field("converted_tensors", &Converted::converted_tensors, "To another element type."),
      field("rounding", &Converted::rounding), field("seconds", &Converted::seconds));
  bind_result<MigrateResult>(
      module, "MigrateResult", "What migrate() wrote.",
      field("from_", &MigrateResult::from, "Version of the format, as \"0.1.0\"."),
      field("to", &MigrateResult::to),
      field("losses", &MigrateResult::losses, "What the target has no place for, a sentence each."),
      field("warnings", &MigrateResult::warnings, "About the source."),
      field("tensors", &MigrateResult::tensors), field("input_bytes", &MigrateResult::input_bytes),
      field("output_bytes", &MigrateResult::output_bytes),
      field("seconds", &MigrateResult::seconds));
}

}  // namespace

void bind_convert(nb::module_& module) {
  bind_convert_results(module);
  module.def("convert", run_convert, nb::arg("path"), nb::arg("target"), nb::arg("from_").none(),
             nb::arg("to").none(), nb::arg("grouping"), nb::arg("depth"), nb::arg("precision"),
             nb::arg("kept"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("extract", run_extract, nb::arg("path"), nb::arg("regions"), nb::arg("target"),
             nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("extract_brain", run_extract_brain, nb::arg("path"), nb::arg("prefix"),
             nb::arg("target"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
  module.def("merge", run_merge, nb::arg("inputs"), nb::arg("target"), nb::arg("prefer"),
             nb::arg("number"), nb::arg("prefixes"), nb::arg("metadata").none(), nb::arg("access"),
             nb::arg("search"), nb::arg("save"));
  module.def("can_migrate", run_can_migrate, nb::arg("from_version"), nb::arg("to_version"));
  module.def("migrate", run_migrate, nb::arg("path"), nb::arg("target"), nb::arg("to"),
             nb::arg("across_major"), nb::arg("access"), nb::arg("search"), nb::arg("save"));
}

}  // namespace thalia::python
