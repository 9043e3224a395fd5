// thalia plot: pictures of a checkpoint. That of a growth or of a chain is made of metadata and
// headers alone; those of weights and differences read the elements, in pieces.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/suggestion.h"
#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/report/chain_svg.h"
#include "cli/report/change_svg.h"
#include "cli/report/file_growth.h"
#include "cli/report/histogram_svg.h"
#include "cli/report/picture_file.h"
#include "cli/tensor/histogram.h"
#include "cli/tensor/largest.h"
#include "cli/tensor/tensor_changes.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "inspect/describe_file.h"
#include "inspect/file_tensors.h"
#include "thalia/error.h"
#include "thalia/formats/safetensors.h"

namespace thalia::cli {
namespace {

struct PlotArguments {
  std::string kind;
  std::vector<std::string> words;     ///< files, then patterns
  std::optional<std::size_t> most{};  ///< nullopt: that of the kind
  std::string output;
};

// Panels that one looks through at a glance; bars of which a large picture shows the names.
constexpr std::size_t kPanels = 24;
constexpr std::size_t kBars = 200;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string shown_of(std::size_t shown, std::size_t all, const char* which) {
  if (shown == all) return {};
  return fmt::format(
      "{} of {} are shown, the {}; {} are left out: name some by PATTERN, or raise --most.", shown,
      counted(all, "tensor", "tensors"), which, grouped(all - shown));
}

// What is said of a picture when it is there.
void print_picture(const PlotArguments& arguments, const Session& session, const std::string& what,
                   const std::string& note = {}) {
  session.out.print("{}: {}\n", escape(arguments.output), what);
  if (!note.empty()) session.out.print("{}\n", note);
}

void plot_growth(const PlotArguments& arguments, const Session& session) {
  const std::string& file = arguments.words.front();
  std::string what;
  write_picture(arguments.output, session, [&] {
    auto options = session.options<ChainOptions>();
    options.read.verification = Verification::off;
    const AnyFile opened = inspect::open_stored(file, options);
    const inspect::DescribedFile facts = inspect::describe_file(opened);
    const std::vector<GrowthEvent> events = parse_growth_history(facts.metadata);
    if (events.empty()) {
      throw UsageError(ErrorCode::not_found, "there is no growth history to plot",
                       {.path = escape(file), .section = "metadata", .field = "growth_history"});
    }
    GrowthPicture picture =
        growth_picture(opened, events, facts.progress.steps.value_or(0),
                       "Neurons per region: " + file_name(file), SvgPlace::document);
    what = fmt::format("{}, {}", counted(events.size(), "event", "events"),
                       counted(picture.regions, "region", "regions"));
    return std::move(picture.svg);
  });
  print_picture(arguments, session, what);
}

void plot_weights(const PlotArguments& arguments, const Session& session) {
  const std::string& file = arguments.words.front();
  const std::vector<std::string> patterns(arguments.words.begin() + 1, arguments.words.end());
  const auto options = session.options<ChainOptions>();
  std::string what;
  std::string note;
  write_picture(arguments.output, session, [&] {
    const AnyFile opened = inspect::open_stored(file, options);
    std::vector<std::uint64_t> sizes;
    inspect::Selection counting("PATTERN", patterns);
    inspect::visit_tensors(opened, counting, [&](const inspect::ShownTensor& tensor) {
      sizes.push_back(tensor.list().elements());
    });
    const std::vector<bool> taken = among_largest(sizes, arguments.most.value_or(kPanels));
    std::vector<Histogram> histograms;
    std::size_t place = 0;
    inspect::Selection selection("PATTERN", patterns);
    inspect::visit_tensors(opened, selection, [&](const inspect::ShownTensor& tensor) {
      if (!taken[place++]) return;
      const inspect::OpenedTensor source = tensor.open();
      histograms.push_back(histogram_of(
          source, measured(source, session.options<ReadOptions>().work), session.stop));
    });
    what = counted(histograms.size(), "histogram", "histograms");
    note = shown_of(histograms.size(), sizes.size(), "largest");
    return histograms_svg(histograms, "Weights: " + file_name(file), note);
  });
  print_picture(arguments, session, what, note);
}

void plot_diff(const PlotArguments& arguments, const Session& session) {
  const std::string& before = arguments.words[0];
  const std::string& after = arguments.words[1];
  std::string what;
  std::string note;
  write_picture(arguments.output, session, [&] {
    auto options = session.options<DiffOptions>();
    options.tensors = {arguments.words.begin() + 2, arguments.words.end()};
    std::vector<TensorChange> changes =
        tensor_changes(before, after, session.options<ChainOptions>(), options);
    const std::size_t all = changes.size();
    changes = most_changed(std::move(changes), arguments.most.value_or(kBars));
    what = counted(changes.size(), "tensor", "tensors");
    note = shown_of(changes.size(), all, "most changed");
    return changes_svg(
        changes, fmt::format("Change from {} to {}", file_name(before), file_name(after)), note);
  });
  print_picture(arguments, session, what, note);
}

void plot_chain(const PlotArguments& arguments, const Session& session) {
  const std::string& file = arguments.words.front();
  std::string what;
  write_picture(arguments.output, session, [&] {
    const std::vector<LinkFacts> links =
        inspect::open_stored(file, session.options<ChainOptions>()).links();
    what = counted(links.size(), "file", "files");
    return chain_svg(links, "Chain of " + file_name(file));
  });
  print_picture(arguments, session, what);
}

struct Kind {
  std::string_view name;
  std::size_t files;
  bool patterns;  ///< and --most
  void (*plot)(const PlotArguments& arguments, const Session& session);
};
constexpr std::array kKinds{Kind{"growth", 1, false, plot_growth},
                            Kind{"weights", 1, true, plot_weights},
                            Kind{"diff", 2, true, plot_diff}, Kind{"chain", 1, false, plot_chain}};

int run_plot(PlotArguments arguments, const Session& session) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& known) { return known.name == arguments.kind; });
  if (kind == kKinds.end()) {
    throw UsageError(ErrorCode::bad_argument,
                     "no such picture" + suggestion_among(arguments.kind, kKinds, &Kind::name),
                     {.field = "KIND",
                      .value = fmt::format("'{}'", escape(arguments.kind)),
                      .bound = choice_names(kKinds, ", ")});
  }
  if (arguments.words.size() < kind->files) {
    throw UsageError(ErrorCode::bad_argument,
                     fmt::format("plot {} compares two files: A and B", kind->name),
                     {.field = "FILE"});
  }
  for (std::size_t i = 0; i < kind->files; ++i)
    arguments.words[i] = find_model(arguments.words[i]).string();
  if (!kind->patterns && arguments.words.size() > kind->files) {
    throw UsageError(
        ErrorCode::bad_argument, fmt::format("plot {} takes one file and no patterns", kind->name),
        {.field = "PATTERN", .value = fmt::format("'{}'", escape(arguments.words[1]))});
  }
  if (arguments.most == std::size_t{0}) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--most", .value = "0", .bound = "at least 1"});
  }
  if (!kind->patterns && arguments.most) {
    throw UsageError(ErrorCode::bad_argument, fmt::format("plot {} shows all there is", kind->name),
                     {.field = "--most"});
  }
  kind->plot(arguments, session);
  return kDone;
}

}  // namespace

Run declare_plot(CLI::App& app) {
  app.description(
      "Draws a picture of a checkpoint of any format, as SVG or PNG by the ending of OUT. growth: "
      "the neurons of each region over the training steps, from the growth history and what "
      "regions "
      "have now, prunings marked. weights: a histogram of each tensor. diff: how far each tensor "
      "of "
      "B is from A, norm(B-A)/norm(A), in the order of B; patterns are of tensors in B. chain: the "
      "sizes of a delta and all that it is based on, over the training steps. SVG suits light and "
      "dark surroundings; PNG needs the program rsvg-convert (Debian: librsvg2-bin). The picture "
      "appears when all of it is written.");
  app.footer(std::string(kPatternHelp) +
             "\n\nExamples:\n  thalia plot weights model.safetensors -o weights.svg\n"
             "  thalia plot diff before.thalia after.thalia 'cortex/*' -o moved.png");
  const auto arguments = std::make_shared<PlotArguments>();
  offer(app.add_option("KIND", arguments->kind, "growth, weights, diff or chain")->required(),
        choice_names(kKinds, "|"));
  add_file(app, "FILE", arguments->words,
           "The file to read; of diff the two; then patterns of tensors, for weights and diff");
  add_option(app, "--most N", arguments->most,
             "Tensors that are drawn at most: of weights the largest, 24 by itself; of diff the "
             "most changed, 200 by itself");
  add_output(app, "OUT", arguments->output)->required();
  return [arguments](const Session& session) { return run_plot(*arguments, session); };
}

}  // namespace thalia::cli
