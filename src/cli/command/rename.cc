// thalia rename: another name for a tensor, in place.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/command/edited.h"
#include "thalia/state/edit.h"

namespace thalia::cli {
namespace {

struct RenameArguments {
  std::string file;
  std::string from;
  std::string to;
};

int run_rename(const RenameArguments& arguments, const Session& session) {
  print_edit(session, "thalia.rename.1", arguments.file, "renamed",
             rename_in_file(arguments.file, arguments.from, arguments.to,
                            session.options<AppendOptions>()));
  return kDone;
}

}  // namespace

Run declare_rename(CLI::App& app) {
  app.description(
      "Gives a tensor another name in its region, in place; the state of a brain keeps it where it "
      "is. The region's tensors are appended as they are stored, and its old bytes are dead until "
      "the file is compacted. A crash leaves the old state or the new one.");
  const auto arguments = std::make_shared<RenameArguments>();
  add_model(app, "FILE", arguments->file, "The file to change");
  offer(app.add_option("TENSOR", arguments->from, "Its name, or REGION/NAME")->required(), kTensor);
  app.add_option("NAME", arguments->to, "The new name")->required();
  return [arguments](const Session& session) { return run_rename(*arguments, session); };
}

}  // namespace thalia::cli
