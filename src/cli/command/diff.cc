// thalia diff: contents are compared by the hashes in the directory, so without --values no payload
// is read.
#include "thalia/diff.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/diff_json.h"
#include "cli/print/diff_text.h"
#include "cli/print/progress.h"
#include "thalia/delta.h"
#include "thalia/paths.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct DiffArguments {
  std::string before;
  std::string after;
  std::vector<std::string> patterns;
  bool values = false;
  bool all = false;
};

// A region's name stands for all of the region, whichever of the two files has it.
std::vector<std::string> tensor_patterns(std::vector<std::string> patterns, const Reader& before,
                                         const Reader& after) {
  for (std::string& pattern : patterns) {
    if (before.find_region(pattern) || after.find_region(pattern)) pattern += "/*";
  }
  return patterns;
}

int run_diff(const DiffArguments& arguments, const Session& session) {
  auto chain = session.options<ChainOptions>();
  ReadOptions& read = chain.read;
  // Checking blocks of the tree would read the payloads that share these blocks.
  if (!arguments.values) read.verification = Verification::off;
  const Reader before = ResolvedFile(arguments.before, {}, chain).reader();
  const Reader after = ResolvedFile(arguments.after, {}, chain).reader();
  ProgressBar bar("comparing " + arguments.after);
  auto options = session.options<DiffOptions>();
  options.values = arguments.values;
  options.tensors = tensor_patterns(arguments.patterns, before, after);
  options.work.progress = bar.callback();
  const Diff result = diff(before, after, options);
  bar.finish();
  if (session.common.json) {
    print_diff_json(session.out, arguments.before, arguments.after, result);
  } else {
    print_diff(session.out, result, arguments.all);
  }
  return result.same() ? kDone : kFailed;
}

}  // namespace

Run declare_diff(CLI::App& app) {
  app.description(
      "Shows what a second checkpoint has more (+), less (-) and other (~) than the first: header, "
      "metadata, regions, tensors and connections; with patterns the tensors that one of them "
      "fits, "
      "and nothing else. Contents are compared by their hashes, so no "
      "payload is read without --values. Exit status 0 where nothing differs, 1 where something "
      "does. Of a delta its state is compared, which takes its space on the temporary folder's "
      "file system meanwhile.");
  app.footer(kPatternHelp);
  const auto arguments = std::make_shared<DiffArguments>();
  add_file(app, "A", arguments->before, "The file to compare with");
  add_file(app, "B", arguments->after, "The file that is compared");
  offer(app.add_option("PATTERN", arguments->patterns,
                       "Names of tensors or regions, or patterns of them"),
        kTensor);
  app.add_flag("--values", arguments->values,
               "Also compare the values of changed tensors: how many, how far at most, and the "
               "root of the mean square");
  app.add_flag("--all", arguments->all, "Show every difference, not the first of long lists");
  return [arguments](const Session& session) { return run_diff(*arguments, session); };
}

}  // namespace thalia::cli
