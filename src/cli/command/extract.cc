// thalia extract: some regions, and the connections among them, as a new file.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/options/region_names.h"
#include "cli/options/save_arguments.h"
#include "cli/print/progress.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {
namespace {

struct ExtractArguments {
  std::string input;
  std::string output;
  std::string regions;
  SaveArguments save;
};

int run_extract(const ExtractArguments& arguments, const Session& session) {
  ConvertOptions options = arguments.save.options(session);
  ProgressBar bar("extracting from " + arguments.input);
  options.save.work.progress = bar.callback();
  const ConvertResult result =
      extract(arguments.input, region_names(arguments.regions, arguments.input, options.chain.read),
              arguments.output, options);
  bar.finish();
  print_result(session, "thalia.extract.1", {&arguments.input, 1}, arguments.output, result);
  return kDone;
}

}  // namespace

Run declare_extract(CLI::App& app) {
  app.description("Copies some regions, and the connections among them, into a new .thalia file.");
  const auto arguments = std::make_shared<ExtractArguments>();
  add_model(app, "FILE", arguments->input, "The file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  add_region_names(app, arguments->regions, kRegions);
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_extract(*arguments, session); };
}

}  // namespace thalia::cli
