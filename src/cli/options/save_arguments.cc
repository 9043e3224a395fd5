// Options of all commands that write a new file, in one place, so that they mean the same
// everywhere.
#include "cli/options/save_arguments.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"

namespace thalia::cli {
namespace {

constexpr std::array kChecksums{Choice<ChecksumType>{"none", ChecksumType::none},
                                Choice<ChecksumType>{"sha256", ChecksumType::sha256},
                                Choice<ChecksumType>{"crc32", ChecksumType::crc32},
                                Choice<ChecksumType>{"block_tree", ChecksumType::block_tree}};
constexpr std::array kLeaves{Choice<LeafAlgorithm>{"xxh3_128", LeafAlgorithm::xxh3_128},
                             Choice<LeafAlgorithm>{"sha256", LeafAlgorithm::sha256}};

std::array<std::pair<std::string_view, const RoundedNumbers*>, 4> kinds_of(
    const RoundingLoss& rounding) {
  return {{{"zero", &rounding.zeroed},
           {"subnormal", &rounding.subnormal},
           {"infinite", &rounding.infinite},
           {"nan", &rounding.nan}}};
}

// Prints what a conversion of types did, or nothing if no tensor was converted.
void print_precision(Output& out, const ConvertResult& result) {
  if (result.converted_tensors == 0) return;
  std::string shares;
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    const auto& share = result.precision.share(kind);
    if (share.count == 0) continue;
    shares += fmt::format("{}{} {} ({}, {:.1f} %)", shares.empty() ? "" : ", ",
                          grouped(share.count), precision_kind_name(kind), human_bytes(share.bytes),
                          result.precision.percent(kind));
  }
  out.print("precision: {} converted; now {}\n",
            counted(result.converted_tensors, "tensor", "tensors"), shares);
  const RoundingLoss& rounding = result.rounding;
  out.print("rounding: largest error {:.3g}", rounding.largest_error);
  if (!rounding.largest_error_tensor.empty())
    out.print(", in {}", escape(rounding.largest_error_tensor));
  out.print("\n");
  for (const auto& [what, numbers] : kinds_of(rounding)) {
    if (numbers->count == 0) continue;
    out.print("rounding: {} became {}; most in {}, {}\n",
              counted(numbers->count, "number", "numbers"), what, escape(numbers->worst),
              grouped(numbers->worst_count));
  }
}

void add_rounding(JsonWriter& json, const RoundingLoss& rounding) {
  json.begin_object().member("largest_error", rounding.largest_error);
  json.member("largest_error_tensor", as_utf8(rounding.largest_error_tensor));
  for (const auto& [what, numbers] : kinds_of(rounding)) {
    json.key(what).begin_object().member("count", numbers->count);
    json.member("worst_tensor", as_utf8(numbers->worst))
        .member("worst_count", numbers->worst_count);
    json.end_object();
  }
  json.end_object();
}

}  // namespace

void SaveArguments::declare(CLI::App& app) {
  app.option_defaults()->group("Saving");
  compression.declare(app, all_codecs(), "none: readers map payloads in place", true);
  add_choice(app, "--checksum TYPE", checksum, kChecksums,
             "none, sha256, crc32 or block_tree (the default)");
  add_choice(app, "--leaves KIND", leaves, kLeaves,
             "Digests of the block tree, and of MCKP: xxh3_128 (the default), or sha256 against "
             "tampering");
  app.add_flag("--sha256", sha256, "Also write OUT.sha256, for sha256sum -c");
  add_option(app, "--max-header BYTES", max_header_bytes,
             "Bytes that the header of a safetensors input may have (default 100000000)");
}

ConvertOptions SaveArguments::options(const Session& session) const {
  auto options = session.options<ConvertOptions>();
  options.save.compression = compression.compression(Codec::none);
  options.save.automatic_codec = compression.named.automatic;
  options.save.checksum = checksum;
  options.save.leaves = leaves;
  options.save.sha256 = sha256;
  options.max_safetensors_header_bytes = max_header_bytes;
  return options;
}

void print_result(const Session& session, std::string_view schema,
                  std::span<const std::string> inputs, const std::string& output,
                  const ConvertResult& result) {
  Output& out = session.out;
  if (!session.common.json) {
    out.print("{}: {}, {} from {} in {:.2f} s\n", escape(output),
              counted(result.tensors, "tensor", "tensors"), human_bytes(result.output_bytes),
              human_bytes(result.input_bytes), result.seconds);
    for (const std::string& loss : result.losses) out.print("lost: {}\n", escape(loss));
    for (const std::string& warning : result.warnings) {
      out.write(Style::warning, "warning");
      out.print(": {}\n", escape(warning));
    }
    print_precision(out, result);
    return;
  }
  print_object(out, schema, [&](JsonWriter& json) {
    if (inputs.size() == 1) {
      add_files(json, inputs[0], output);
    } else {
      add_list(json, "inputs", inputs);
      json.member("output", as_utf8(output));
    }
    json.member("tensor_count", result.tensors);
    add_sizes_and_time(json, result);
    add_list(json, "losses", result.losses);
    add_list(json, "warnings", result.warnings);
    json.key("precision").begin_object();
    json.member("converted_tensors", result.converted_tensors);
    json.key("rounding");
    add_rounding(json, result.rounding);
    json.key("types").raw(result.precision.to_json());
    json.end_object();
  });
}

}  // namespace thalia::cli
