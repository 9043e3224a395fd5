// thalia diff: two .thalia files by the hashes in their directories, so that without --values no
// payload is read; files of other formats by the elements of their tensors.
#include "thalia/state/diff.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/diff_json.h"
#include "cli/print/diff_stat.h"
#include "cli/print/diff_text.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "inspect/diff_files.h"
#include "thalia/error.h"
#include "thalia/state/delta.h"

namespace thalia::cli {
namespace {

struct DiffArguments {
  std::string before;
  std::string after;
  std::vector<std::string> patterns;
  bool values = false;
  bool stat = false;
  bool all = false;
  double absolute_tolerance = 0;
  double relative_tolerance = 0;

  bool read_values() const noexcept {
    return values || stat || absolute_tolerance > 0 || relative_tolerance > 0;
  }
};

// @throws UsageError naming the option.
void check_tolerance(const char* option, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw UsageError(
      ErrorCode::bad_argument, {},
      {.field = option, .value = fmt::format("{}", value), .bound = "a finite number, 0 or more"});
}

inspect::FilesDiff compare(const DiffArguments& arguments, const ChainOptions& chain,
                           const DiffOptions& options) {
  try {
    return inspect::diff_files(arguments.before, arguments.after, chain, options);
  } catch (const UsageError& error) {
    ErrorContext context = error.context();
    if (context.field != "tensors") throw;
    context.field = "PATTERN";
    throw UsageError(error.code(), error.message(), std::move(context));
  }
}

void print_notes(Output& out, const DiffArguments& arguments, const DiffedFiles& files) {
  if (!files.metadata_compared && arguments.patterns.empty())
    out.print("metadata are not compared: {} and {} lay them out in different ways\n",
              file_format_name(files.before_format), file_format_name(files.after_format));
  if (files.ambiguous_names > 0)
    out.print("{} not paired, as several tensors of a file have the name\n",
              counted(files.ambiguous_names, "tensor is", "tensors are"));
}

int run_diff(const DiffArguments& arguments, const Session& session) {
  check_tolerance("--atol", arguments.absolute_tolerance);
  check_tolerance("--rtol", arguments.relative_tolerance);
  ProgressBar bar("comparing " + arguments.after);
  auto options = session.options<DiffOptions>();
  options.values = arguments.read_values();
  options.tensors = arguments.patterns;
  options.absolute_tolerance = arguments.absolute_tolerance;
  options.relative_tolerance = arguments.relative_tolerance;
  options.work.progress = bar.callback();
  const auto chain = session.options<ChainOptions>();
  const inspect::FilesDiff found = compare(arguments, chain, options);
  const Diff& result = found.diff;
  const DiffedFiles files{.before = arguments.before,
                          .after = arguments.after,
                          .before_format = found.before_format,
                          .after_format = found.after_format,
                          .metadata_compared = found.metadata_compared,
                          .ambiguous_names = found.ambiguous};
  bar.finish();
  complain_of_lack(arguments.before, found.before_lacks);
  complain_of_lack(arguments.after, found.after_lacks);
  if (session.common.json) {
    print_diff_json(session.out, files, result);
    return result.same() ? kDone : kFailed;
  }
  if (arguments.stat) {
    print_diff_stat(session.out, result, output_columns());
  } else {
    print_diff(session.out, result, arguments.all);
  }
  print_notes(session.out, arguments, files);
  return result.same() ? kDone : kFailed;
}

}  // namespace

Run declare_diff(CLI::App& app) {
  app.description(
      "Shows what a second checkpoint has more (+), less (-) and other (~) than the first: header, "
      "metadata, regions, tensors and connections; with patterns the tensors that match one, "
      "and nothing else. For a delta, its state is compared. Two .thalia files are compared by "
      "the hashes of their contents, so no payload is read without --values. Where a file has "
      "another format, tensors are paired by name, also a name alone with REGION/NAME where no "
      "other has it, and read: their elements are compared, not how they are stored, and the "
      "metadata where both formats are the same. Elements of quantized tensors are compared "
      "restored. NaN is the same as a NaN of the same bits; -0 is 0. Exit status 0 where nothing "
      "differs, 1 where something does.");
  app.footer(std::string(kPatternHelp) +
             "\n\nExamples:\n  thalia diff monday.thalia tuesday.thalia --stat\n  thalia diff "
             "model.safetensors model.thalia --atol 1e-3");
  const auto arguments = std::make_shared<DiffArguments>();
  add_model(app, "A", arguments->before, "The file to compare with, of any format");
  add_model(app, "B", arguments->after, "The file that is compared");
  offer(app.add_option("PATTERN", arguments->patterns,
                       "Names of tensors or regions, or patterns of them"),
        kTensor);
  app.add_flag("--values", arguments->values,
               "Also compare the values of changed tensors: how many differ, how far at most, the "
               "root of the mean square, the norm of the difference over that of A (relative), and "
               "the cosine between both");
  app.add_flag("--stat", arguments->stat,
               "A line for each tensor that differs, with how many of its numbers do and a bar, "
               "and the sums");
  add_option(app, "--atol X", arguments->absolute_tolerance,
             "Differences of at most X do not count; nor do types and encodings, then");
  add_option(app, "--rtol X", arguments->relative_tolerance,
             "The same of X times the size of the number in A; both are added");
  app.add_flag("--all", arguments->all, "Show every difference, not the first of long lists");
  return [arguments](const Session& session) { return run_diff(*arguments, session); };
}

}  // namespace thalia::cli
