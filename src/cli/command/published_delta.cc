// Which of the options of thalia delta mean something for a kind is checked here, before anything
// is read: what would be ignored is refused.
#include "cli/command/published_delta.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"
#include "thalia/formats/lora_adapter.h"
#include "thalia/formats/weight_delta.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

constexpr std::array kPublished{Choice<DeltaFor>{"slime", DeltaFor::slime},
                                Choice<DeltaFor>{"trl", DeltaFor::trl},
                                Choice<DeltaFor>{"peft", DeltaFor::peft}};

struct Paths {
  std::string base;
  std::string input;
  std::string output;
};

void print_weight_delta(const Paths& paths, const WeightDeltaResult& result, bool is_bytes,
                        const Session& session) {
  if (!session.common.json) {
    session.out.print("{}: version {}, {} of {} changed, {} of {} {}; {} beside a model of {}\n",
                      escape(paths.output), result.version, grouped(result.changed_tensors),
                      counted(result.tensors, "tensor", "tensors"),
                      grouped(result.changed_elements), grouped(result.elements),
                      is_bytes ? "bytes" : "elements", human_bytes(result.file_bytes),
                      human_bytes(result.base_bytes));
    return;
  }
  print_object(session.out, "thalia.weight_delta.1", [&](JsonWriter& json) {
    json.member("base", as_utf8(paths.base));
    add_files(json, paths.input, paths.output);
    json.member("version", result.version).member("tensor_count", result.tensors);
    json.member("changed_tensors", result.changed_tensors);
    json.member("elements", result.elements);
    json.member("changed_elements", result.changed_elements);
    json.member("base_bytes", result.base_bytes).member("output_bytes", result.file_bytes);
    json.member("seconds", result.seconds);
  });
}

void print_adapter(const Paths& paths, const LoraAdapterResult& result, const Session& session) {
  Output& out = session.out;
  if (!session.common.json) {
    out.print("{}: {} of {} changed, rank {}; {} beside a model of {}\n", escape(paths.output),
              grouped(result.changed_tensors), counted(result.tensors, "tensor", "tensors"),
              result.rank, human_bytes(result.file_bytes), human_bytes(result.base_bytes));
    print_low_rank(out, result.matrices);
    for (const LeftOutTensor& tensor : result.left_out) {
      out.write(Style::warning, "warning");
      out.print(": {} changed and is left out: {}\n", escape_name(tensor.name), tensor.reason);
    }
    return;
  }
  print_object(out, "thalia.lora_adapter.1", [&](JsonWriter& json) {
    json.member("base", as_utf8(paths.base));
    add_files(json, paths.input, paths.output);
    json.member("tensor_count", result.tensors);
    json.member("changed_tensors", result.changed_tensors).member("rank", result.rank);
    add_low_rank(json, result.matrices);
    json.key("left_out").begin_array();
    for (const LeftOutTensor& tensor : result.left_out) {
      json.begin_object().member("name", as_utf8(tensor.name));
      json.member("reason", tensor.reason).end_object();
    }
    json.end_array();
    json.member("base_bytes", result.base_bytes).member("output_bytes", result.file_bytes);
    json.member("seconds", result.seconds);
  });
}

int run_adapter(const PublishedArguments& arguments, const Paths& paths,
                const std::optional<LowRankOptions>& low_rank, const Session& session) {
  const auto refuse = [](std::string_view option, std::string_view bound, std::string message) {
    throw UsageError(ErrorCode::bad_argument, std::move(message),
                     {.field = std::string(option), .bound = std::string(bound)});
  };
  if (!low_rank) {
    refuse("--as peft", "--low-rank with it",
           "an adapter holds changes of low rank, which loses something");
  }
  if (!arguments.encoding.empty()) refuse("--encoding", "--as slime or trl", "");
  if (!arguments.checksum.empty()) refuse("--state-checksum", "--as slime", "");
  auto options = session.options<LoraAdapterOptions>();
  options.max_rank = low_rank->max_rank;
  options.max_relative_error = low_rank->max_relative_error;
  options.leave_out = arguments.leave_out;
  print_adapter(paths, write_lora_adapter(paths.base, paths.input, paths.output, options), session);
  return kDone;
}

}  // namespace

void print_low_rank(Output& out, const std::vector<LowRankReport>& reports) {
  using enum Table::Align;
  const bool has_regions =
      std::ranges::any_of(reports, [](const LowRankReport& one) { return !one.region.empty(); });
  std::vector<Table::Column> columns;
  if (has_regions) columns.push_back({"region"});
  for (Table::Column& column : std::vector<Table::Column>{{"tensor"},
                                                          {"rank", right},
                                                          {"bits", right},
                                                          {"stored", right},
                                                          {"largest error", right},
                                                          {"rms error", right},
                                                          {"of the change", right}})
    columns.push_back(std::move(column));
  Table table(std::move(columns));
  for (const LowRankReport& one : reports) {
    std::vector<std::string> row;
    if (has_regions) row.push_back(escape_name(one.region));
    for (std::string& cell : std::vector<std::string>{
             escape_name(one.name), std::to_string(one.rank), fmt::format("{:.3g}", one.bits),
             human_bytes(one.stored_bytes), fmt::format("{:.3g}", one.max_error),
             fmt::format("{:.3g}", one.rms_error), fmt::format("{:.3g}", one.relative_error)})
      row.push_back(std::move(cell));
    table.add_row(std::move(row));
  }
  if (!reports.empty()) table.print(out);
}

void add_low_rank(JsonWriter& json, const std::vector<LowRankReport>& reports) {
  json.key("low_rank").begin_array();
  for (const LowRankReport& one : reports) {
    json.begin_object();
    add_region(json, one.region);
    json.member("name", as_utf8(one.name));
    json.member("dtype", dtype_name(one.dtype)).member("rows", one.rows);
    json.member("columns", one.columns).member("rank", one.rank).member("bits", one.bits);
    json.member("stored_bytes", one.stored_bytes).member("max_error", one.max_error);
    json.member("rms_error", one.rms_error).member("relative_error", one.relative_error);
    json.end_object();
  }
  json.end_array();
}

void PublishedArguments::declare(CLI::App& app, CLI::Option* low_rank,
                                 const std::vector<CLI::Option*>& foreign) {
  CLI::Option* const as = add_choice(
      app, "--as KIND", kind, kPublished,
      "Write what another program takes: what slime publishes to its servers, whose OUT is the "
      "folder weight_vNNNNNN of a version; what trl does, whose OUT is step_NNNNNN.safetensors; or "
      "with --low-rank an adapter that peft loads, whose OUT is a folder");
  for (CLI::Option* const option : foreign) as->excludes(option);
  add_option(app, "--encoding NAME", encoding,
             "With --as: xor, the default, or overwrite of slime; gap_delta, the default, or raw "
             "of trl")
      ->needs(as);
  add_option(app, "--state-checksum NAME", checksum,
             "With --as slime: xxh3-128, the default, blake3 or adler32")
      ->needs(as);
  app.add_flag("--leave-out", leave_out,
               "With --as peft: leave what changed and an adapter cannot hold as it is in BASE, "
               "with a warning")
      ->needs(as)
      ->needs(low_rank);
}

int run_published(const PublishedArguments& arguments, const std::string& base,
                  const std::string& input, const std::string& output,
                  const std::optional<LowRankOptions>& low_rank, const Session& session) {
  const Paths paths{base, input, output};
  if (arguments.kind == DeltaFor::peft) return run_adapter(arguments, paths, low_rank, session);
  if (low_rank) {
    throw UsageError(ErrorCode::bad_argument, "nothing is lost in what slime and trl publish",
                     {.field = "--low-rank", .bound = "--as peft"});
  }
  auto options = session.options<WeightDeltaOptions>();
  const bool is_slime = arguments.kind == DeltaFor::slime;
  options.kind = is_slime ? WeightDeltaKind::slime : WeightDeltaKind::trl;
  options.encoding = arguments.encoding;
  options.checksum = arguments.checksum;
  print_weight_delta(paths, write_weight_delta(base, input, output, options), is_slime, session);
  return kDone;
}

}  // namespace thalia::cli
