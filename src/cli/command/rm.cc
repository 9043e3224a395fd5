// thalia rm: a file without some regions or tensors, in place.
#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/edited.h"
#include "thalia/state/edit.h"

namespace thalia::cli {
namespace {

struct RmArguments {
  std::string file;
  std::vector<std::string> patterns;
};

int run_rm(const RmArguments& arguments, const Session& session) {
  print_edit(
      session, "thalia.rm.1", arguments.file, "removed",
      remove_from_file(arguments.file, arguments.patterns, session.options<AppendOptions>()));
  return kDone;
}

}  // namespace

Run declare_rm(CLI::App& app) {
  app.description(
      "Leaves out regions, with their connections, and tensors, in place. What is left out is dead "
      "until the file is compacted. A crash leaves the old state or the new one.");
  const auto arguments = std::make_shared<RmArguments>();
  add_model(app, "FILE", arguments->file, "The file to change");
  offer(app.add_option("PATTERN", arguments->patterns,
                       "Names of regions, or of tensors as in --precision, with * and ?")
            ->required(),
        kTensor);
  return [arguments](const Session& session) { return run_rm(*arguments, session); };
}

}  // namespace thalia::cli
