// thalia info: what a file says about itself. Header, directory and metadata are read, and no
// payload; so it is fast for any size, and cannot tell whether payloads are whole.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/facts_text.h"
#include "inspect/describe_file.h"
#include "inspect/facts_json.h"
#include "thalia/error.h"
#include "thalia/state/delta.h"

namespace thalia::cli {
namespace {

struct InfoArguments {
  std::string file;
  bool metadata = false;
};

int run_info(const InfoArguments& arguments, const Session& session) {
  if (arguments.metadata && session.common.json) {
    throw UsageError(ErrorCode::bad_argument, "JSON has all of the metadata anyhow",
                     {.field = "--metadata", .bound = "either the option or --json"});
  }
  auto options = session.options<ChainOptions>();
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const inspect::DescribedFile facts = inspect::describe_file(arguments.file, options);
  if (session.common.json) {
    session.out.write(inspect::facts_json(facts) + "\n");
  } else {
    print_facts(session.out, facts, arguments.metadata);
  }
  return kDone;
}

}  // namespace

Run declare_info(CLI::App& app) {
  app.description(
      "Shows what a file is: parameters (elements of tensors that are learned; stored ones of "
      "sparse tensors), dtypes with their shares, training step, sizes; then how it is stored, its "
      "growth history, and the beginning of its metadata. Reads no payload, so it cannot tell "
      "whether they are whole: 'thalia verify' does.");
  const auto arguments = std::make_shared<InfoArguments>();
  add_model(app, "FILE", arguments->file, "A checkpoint of any format");
  app.add_flag("--metadata", arguments->metadata, "Show all of the metadata");
  return [arguments](const Session& session) { return run_info(*arguments, session); };
}

}  // namespace thalia::cli
