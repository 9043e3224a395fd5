// thalia merge: several checkpoints in one.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/region_names.h"
#include "cli/options/save_arguments.h"
#include "cli/print/progress.h"
#include "cli/terminal/output_file.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {
namespace {

struct MergeArguments {
  std::vector<std::string> inputs;
  std::string output;
  std::string prefer;
  std::vector<std::string> prefixes;
  SaveArguments save;
};

MergePreference preference_named(const std::string& word, const std::vector<std::string>& inputs) {
  using Kind = MergePreference::Kind;
  if (word.empty()) return {};
  if (word == "first") return {.kind = Kind::first};
  if (word == "last") return {.kind = Kind::last};
  // An input may be named with other words than on the command line, such as another relative path.
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const std::string& input) {
    return input == word || is_same_file(input, word);
  });
  if (found == inputs.end()) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--prefer",
                      .value = fmt::format("'{}'", word),
                      .bound = "first, last, one of the files that are merged"});
  }
  return {.kind = Kind::input, .number = static_cast<std::size_t>(found - inputs.begin())};
}

int run_merge(const MergeArguments& arguments, const Session& session) {
  const auto& [inputs, output, prefer, prefixes, save] = arguments;
  const MergeOptions merging{.preference = preference_named(prefer, inputs), .prefixes = prefixes};
  if (!prefixes.empty() && prefixes.size() != inputs.size()) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--prefix",
                      .value = std::to_string(prefixes.size()),
                      .bound = fmt::format("{}, one for each file", inputs.size())});
  }
  ConvertOptions options = save.options(session);
  ProgressBar bar("merging into " + output);
  options.save.work.progress = bar.callback();
  const ConvertResult result = merge({inputs.begin(), inputs.end()}, output, merging, options);
  bar.finish();
  print_result(session, "thalia.merge.1", inputs, output, result);
  return kDone;
}

}  // namespace

Run declare_merge(CLI::App& app) {
  app.description(
      "Copies the regions and connections of several checkpoints into one. What two of them have "
      "alike is taken once; what they have under one name and not alike is an error, unless "
      "--prefer says whose is taken. Metadata are the first file's and what others add; growth "
      "histories are joined. With --prefix, each file is a brain of its own in the output, and "
      "'thalia extract --prefix' gives it back.");
  const auto arguments = std::make_shared<MergeArguments>();
  add_model(app, "FILES", arguments->inputs, "The files to merge")
      ->expected(2, -1)
      ->option_text("A B...");
  add_output(app, "OUT", arguments->output)->required();
  CLI::Option* const prefer = offer(
      add_option(app, "--prefer WHICH", arguments->prefer,
                 "Where files differ: first or last, of those that have it, or the name of one"),
      "first|last|@file");
  add_prefix(app, arguments->prefixes,
             "Comes before the names of the regions of a file, as left/; once for each file, in "
             "their order")
      ->excludes(prefer);
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_merge(*arguments, session); };
}

}  // namespace thalia::cli
