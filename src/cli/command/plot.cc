// thalia plot: a picture from metadata and directory alone, without payloads.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/growth_chart.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "thalia/error.h"
#include "thalia/growth_history.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct PlotArguments {
  std::string kind;
  std::string file;
  std::string output;
};

int plot_growth(const PlotArguments& arguments, const Session& session) {
  auto read = session.options<ReadOptions>();
  read.verification = Verification::off;
  const Reader reader = Reader::open(arguments.file, read);
  const auto events = parse_growth_history(reader.metadata_json());
  if (events.empty()) {
    throw UsageError(
        ErrorCode::not_found, "there is no growth history to plot",
        {.path = escape(arguments.file), .section = "metadata", .field = "growth_history"});
  }
  std::vector<RegionSize> regions;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const RegionView region = reader.region(i);
    regions.push_back({std::string(region.name()), region.n_neurons()});
  }
  const GrowthChart chart = growth_chart(events, regions, reader.header().training_steps);
  const std::string name = std::filesystem::path(arguments.file).filename().string();
  const std::string svg = growth_svg(chart, "Neurons per region: " + name);
  print_into(arguments.output, session, [&](Output& out) { out.write(svg); });
  session.out.print("{}: {}, {}\n", escape(arguments.output),
                    counted(events.size(), "event", "events"),
                    counted(chart.series.size(), "region", "regions"));
  return kDone;
}

int run_plot(const PlotArguments& arguments, const Session& session) {
  if (arguments.kind == "growth") return plot_growth(arguments, session);
  throw UsageError(
      ErrorCode::bad_argument, {},
      {.field = "KIND", .value = fmt::format("'{}'", escape(arguments.kind)), .bound = "growth"});
}

}  // namespace

Run declare_plot(CLI::App& app) {
  app.description(
      "Draws a picture of a checkpoint as SVG. growth: the neurons of each region over the "
      "training steps, from the growth history and what regions have now, prunings marked. The "
      "picture appears when all of it is written.");
  const auto arguments = std::make_shared<PlotArguments>();
  offer(app.add_option("KIND", arguments->kind, "growth")->required(), "growth");
  add_file(app, "FILE", arguments->file, "The file to read");
  add_output(app, "OUT.svg", arguments->output)->required();
  return [arguments](const Session& session) { return run_plot(*arguments, session); };
}

}  // namespace thalia::cli
