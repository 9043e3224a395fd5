// thalia extract: some regions, and the connections among them, or a brain of an ensemble, as a
// new file.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/options/region_names.h"
#include "cli/options/save_arguments.h"
#include "cli/print/progress.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {
namespace {

struct ExtractArguments {
  std::string input;
  std::string output;
  std::string regions;
  std::string prefix;
  SaveArguments save;
};

int run_extract(const ExtractArguments& arguments, const Session& session) {
  const auto& [input, output, regions, prefix, save] = arguments;
  if (regions.empty() && prefix.empty()) {
    throw UsageError(ErrorCode::bad_argument, "says what is extracted, or --prefix",
                     {.field = "--regions", .value = "none", .bound = "names of regions"});
  }
  ConvertOptions options = save.options(session);
  ProgressBar bar("extracting from " + input);
  options.save.work.progress = bar.callback();
  const ConvertResult result =
      prefix.empty()
          ? extract(input, region_names(regions, input, options.chain.read), output, options)
          : extract_brain(input, prefix, output, options);
  bar.finish();
  print_result(session, "thalia.extract.1", {&input, 1}, output, result);
  return kDone;
}

}  // namespace

Run declare_extract(CLI::App& app) {
  app.description(
      "Copies some regions, and the connections among them, into a new .thalia file; or, with "
      "--prefix, one of the files that 'thalia merge --prefix' put together, as it was.");
  const auto arguments = std::make_shared<ExtractArguments>();
  add_model(app, "FILE", arguments->input, "The file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  CLI::Option* const regions = add_region_names(app, arguments->regions, kRegions);
  add_prefix(app, arguments->prefix, "The prefix of a brain, which is copied under its own names")
      ->excludes(regions);
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_extract(*arguments, session); };
}

}  // namespace thalia::cli
