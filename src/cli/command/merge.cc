// thalia merge: several checkpoints in one. The last of FILES is the output.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/save_arguments.h"
#include "cli/print/progress.h"
#include "thalia/error.h"
#include "thalia/merge.h"
#include "thalia/paths.h"

namespace thalia::cli {
namespace {

struct MergeArguments {
  std::vector<std::string> files;  ///< the last one is the output
  std::string prefer;
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
  const std::vector<std::string> inputs(arguments.files.begin(), arguments.files.end() - 1);
  const std::string& output = arguments.files.back();
  const MergePreference preference = preference_named(arguments.prefer, inputs);
  ConvertOptions options = arguments.save.options(session);
  ProgressBar bar("merging into " + output);
  options.save.work.progress = bar.callback();
  const ConvertResult result = merge({inputs.begin(), inputs.end()}, output, preference, options);
  bar.finish();
  print_result(session, result, output);
  return kDone;
}

}  // namespace

Run declare_merge(CLI::App& app) {
  app.description(
      "Copies the regions and connections of several checkpoints into one. What two of them have "
      "alike is taken once; what they have under one name and not alike is an error, unless "
      "--prefer says whose is taken. Metadata are the first file's and what others add; growth "
      "histories are joined.");
  const auto arguments = std::make_shared<MergeArguments>();
  add_file(app, "FILES", arguments->files, "The files to read, and last the one to write")
      ->expected(3, -1)
      ->option_text("A B... OUT");
  offer(add_option(app, "--prefer WHICH", arguments->prefer,
                   "Where files differ: first or last, of those that have it, or the name of one"),
        "first|last|@file");
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_merge(*arguments, session); };
}

}  // namespace thalia::cli
