// thalia extract
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "cli/save_arguments.h"
#include "thalia/convert.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct Arguments {
  std::string input;
  std::string output;
  std::string regions;
  SaveArguments save;
};

// As they are typed first: a name may hold what looks like an escape.
std::vector<std::string> region_names(const Arguments& arguments) {
  std::vector<std::string> names;
  std::string_view rest = arguments.regions;
  for (std::size_t comma; (comma = rest.find(',')) != std::string_view::npos;) {
    names.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma + 1);
  }
  names.emplace_back(rest);
  const bool escaped = unescape_name(arguments.regions) != arguments.regions;
  if (!escaped) return names;
  const Reader reader = Reader::open(arguments.input, {.verification = Verification::off});
  for (std::string& name : names) {
    if (!reader.find_region(name)) name = unescape_name(name);
  }
  return names;
}

int run_extract(const Arguments& arguments, Output& out) {
  ConvertOptions options = arguments.save.options();
  ProgressBar bar("extracting from " + arguments.input);
  options.save.progress = bar.callback();
  const ConvertResult result =
      extract(arguments.input, region_names(arguments), arguments.output, options);
  bar.finish();
  print_result(out, result, arguments.output, arguments.save.json);
  return kDone;
}

}  // namespace

Run declare_extract(CLI::App& app) {
  app.description("Copies some regions, and the connections among them, into a new .thalia file.");
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("FILE", arguments->input, "The file to read")->required();
  app.add_option("OUT", arguments->output, "The file to write")->required();
  app.add_option("--regions", arguments->regions,
                 "Names of regions, separated by commas; a comma in a name is \\x2c")
      ->required()
      ->option_text("A,B");
  arguments->save.declare(app);
  return [arguments](Output& out) { return run_extract(*arguments, out); };
}

}  // namespace thalia::cli
