// thalia stats: what the elements of each tensor are like.
#include "thalia/state/tensor_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/tensor/element.h"
#include "cli/tensor/measured_tensor.h"
#include "cli/terminal/escape.h"
#include "inspect/file_tensors.h"
#include "thalia/formats/file_facts.h"

namespace thalia::cli {
namespace {

enum class FailOn { nothing, nan, infinite, any };
constexpr std::array kFailOn{Choice<FailOn>{"nan", FailOn::nan},
                             Choice<FailOn>{"infinite", FailOn::infinite},
                             Choice<FailOn>{"any", FailOn::any}};

struct StatsArguments {
  std::string file;
  std::vector<std::string> patterns;
  FailOn fail_on = FailOn::nothing;
};

bool is_bad(const TensorStatistics& of, FailOn fail_on) {
  const bool nan = fail_on == FailOn::nan || fail_on == FailOn::any;
  const bool infinite = fail_on == FailOn::infinite || fail_on == FailOn::any;
  return (nan && of.nan > 0) || (infinite && of.infinite > 0);
}

void print_statistics(Output& out, const std::vector<MeasuredTensor>& tensors) {
  using enum Table::Align;
  Table table({{"tensor"},
               {"dtype"},
               {"min", right},
               {"max", right},
               {"mean", right},
               {"std", right},
               {"norm", right},
               {"zeros", right},
               {"subnormal", right},
               {"nan", right},
               {"inf", right}});
  for (const MeasuredTensor& tensor : tensors) {
    const TensorStatistics& of = tensor.statistics;
    std::vector<std::string> cells{shown_name(tensor.region, tensor.name),
                                   std::string(dtype_name(tensor.layout.dtype))};
    for (const double number : {of.min, of.max, of.mean, of.deviation, of.norm})
      cells.push_back(of.finite() == 0 ? "-" : short_number(number));
    for (const std::uint64_t count : {of.zeros, of.subnormal, of.nan, of.infinite})
      cells.push_back(count_or_dash(count));
    table.add_row(std::move(cells));
  }
  table.print(out);
}

void add_number(JsonWriter& json, const char* name, const TensorStatistics& of, double number) {
  json.key(name);
  if (of.finite() == 0) {
    json.null();
    return;
  }
  std::string text;
  append_json(text, Element(number));
  json.raw(text);
}

void print_statistics_json(const Session& session, const StatsArguments& arguments,
                           FileFormat format, const std::vector<MeasuredTensor>& tensors) {
  print_object(session.out, "thalia.stats.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.file));
    json.member("format", file_format_name(format));
    json.key("tensors").begin_array();
    for (const MeasuredTensor& tensor : tensors) {
      const TensorStatistics& of = tensor.statistics;
      json.begin_object();
      add_identity(json, tensor.region, tensor.name, tensor.layout);
      json.member("elements", of.elements);
      add_number(json, "min", of, of.min);
      add_number(json, "max", of, of.max);
      add_number(json, "mean", of, of.mean);
      add_number(json, "std", of, of.deviation);
      add_number(json, "norm", of, of.norm);
      json.member("zeros", of.zeros).member("subnormal", of.subnormal);
      json.member("nan", of.nan).member("infinite", of.infinite).end_object();
    }
    json.end_array();
  });
}

int run_stats(const StatsArguments& arguments, const Session& session) {
  Measuring measuring(session.options<ReadOptions>().work);
  inspect::Selection selection("PATTERN", arguments.patterns);
  const AnyFile file = inspect::open_stored(arguments.file, session.options<ChainOptions>());
  inspect::visit_tensors(file, selection,
                         [&](const inspect::ShownTensor& tensor) { measuring.add(tensor.open()); });
  const std::vector<MeasuredTensor> tensors = measuring.finish();
  session.common.json ? print_statistics_json(session, arguments, file.format(), tensors)
                      : print_statistics(session.out, tensors);
  complain_of_lack(arguments.file, file.lacks());
  const bool failed = std::any_of(
      tensors.begin(), tensors.end(),
      [&](const MeasuredTensor& tensor) { return is_bad(tensor.statistics, arguments.fail_on); });
  return failed ? kFailed : kDone;
}

}  // namespace

Run declare_stats(CLI::App& app) {
  app.description(
      "Reads the elements of all tensors, or of those that a pattern fits, and shows of each the "
      "least and the greatest, the mean, the standard deviation, the norm (the root of the sum of "
      "squares), and how many are zero, subnormal, NaN and infinite. The first five are those of "
      "the finite elements. Elements that a sparse tensor does not store are zeros; of complex "
      "numbers the absolute value counts. Quantized tensors and deltas are restored.");
  app.footer(
      std::string(kPatternHelp) +
      "\n\nExamples:\n  thalia stats model.safetensors\n  thalia stats run.thalia 'cortex/*' "
      "--fail-on nan");
  const auto arguments = std::make_shared<StatsArguments>();
  add_model(app, "FILE", arguments->file, "A checkpoint of any format");
  offer(app.add_option("PATTERN", arguments->patterns,
                       "Names of tensors or regions, or patterns of them"),
        kTensor);
  add_choice(
      app, "--fail-on KIND", arguments->fail_on, kFailOn,
      "Exit with status 1 if there are elements of this kind: nan, infinite, or any of both");
  return [arguments](const Session& session) { return run_stats(*arguments, session); };
}

}  // namespace thalia::cli
