// thalia report: all that info, verify, stats, diff and plot tell, as one page. It appears when all
// of it is written, also of a file that is damaged: the page says so, and the status.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/report/file_growth.h"
#include "cli/report/file_report.h"
#include "cli/report/report_page.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "inspect/file_tensors.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct ReportArguments {
  std::string file;
  std::string base;
  std::string output;
};

std::string growth_of(const PageReport& report, const Session& session) {
  const auto events = inspect::growth_events(report.facts.metadata);
  if (!events || events->empty()) return {};
  auto options = session.options<ChainOptions>();
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  return growth_picture(inspect::open_stored(report.facts.path, options), *events,
                        report.facts.progress.steps.value_or(0),
                        "Neurons per region over training steps", SvgPlace::page)
      .svg;
}

int run_report(const ReportArguments& arguments, const Session& session) {
  const std::string& output = arguments.output;
  if (!output.ends_with(".html") && !output.ends_with(".htm")) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--output",
                      .value = fmt::format("'{}'", escape(output)),
                      .bound = "a name that ends in .html"});
  }
  PageReport report;
  print_into(output, session, [&](Output& out) {
    report = report_of(arguments.file, arguments.base, session);
    write_page(out, report, growth_of(report, session));
  });
  session.out.print("{}: {}, {}\n", escape(output),
                    counted(report.tensors.size(), "tensor", "tensors"),
                    counted(report.histograms.size(), "histogram", "histograms"));
  if (report.verified.ok()) return kDone;
  session.out.print("{} is damaged: the page says where\n", escape(arguments.file));
  return kFailed;
}

}  // namespace

Run declare_report(CLI::App& app) {
  app.description(
      "Writes one web page about a checkpoint of any format: what it is, whether it is whole, what "
      "its layers take, histograms of the largest tensors, growth, the chain of a delta, every "
      "tensor with its range and moments, and its metadata; with BASE also what changed since. The "
      "page needs nothing but itself, and suits light and dark, phones and paper. All elements are "
      "read, in pieces. Exit status 1 where something in the file is damaged: the page says what, "
      "and shows the rest.");
  app.footer("Example:\n  thalia report step2000.thalia step1000.thalia -o step2000.html");
  const auto arguments = std::make_shared<ReportArguments>();
  add_model(app, "FILE", arguments->file, "The checkpoint to report on");
  offer(app.add_option("BASE", arguments->base, "An earlier one to compare it with"), kFile);
  add_output(app, "OUT.html", arguments->output)->required();
  return [arguments](const Session& session) { return run_report(*arguments, session); };
}

}  // namespace thalia::cli
