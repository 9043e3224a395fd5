// thalia rebase: a chain of deltas turned, so that its newest file is the full one.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/compression_arguments.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/rebased.h"
#include "inspect/outside_runs.h"
#include "thalia/state/delta.h"

namespace thalia::cli {
namespace {

struct RebaseArguments {
  std::vector<std::string> files;
  std::vector<std::string> also;
  unsigned max_depth = RebaseOptions{}.max_depth;
  bool plain = false;
  CompressionArguments compression;
};

int run_rebase(const RebaseArguments& arguments, const Session& session) {
  const std::vector<std::filesystem::path> files(arguments.files.begin(), arguments.files.end());
  inspect::require_outside_runs(files);
  auto options = session.options<RebaseOptions>();
  options.others.assign(arguments.also.begin(), arguments.also.end());
  options.max_depth = arguments.max_depth;
  options.pack = !arguments.plain;
  options.save.compression = arguments.compression.compression(Codec::none);
  const RebaseResult result = rebase(files, options);
  if (!session.common.json) {
    print_rebased(session.out, result);
    return kDone;
  }
  print_object(session.out, "thalia.rebase.1",
               [&](JsonWriter& json) { add_rebased(json, result); });
  return kDone;
}

}  // namespace

Run declare_rebase(CLI::App& app) {
  app.description(
      "Turns a chain of deltas: FILE, its newest, becomes full, and each older file an exact delta "
      "of the next newer. With several files these, the newest first, full or deltas. Names and "
      "states stay. At each moment every file can be restored, so what ended early can be begun "
      "again with all files named. Deltas beside them that are based on one are written anew, "
      "too; those in other folders lose their base unless --also names them.");
  const auto arguments = std::make_shared<RebaseArguments>();
  add_file(app, "FILE", arguments->files, "The newest checkpoint, or several, the newest first")
      ->expected(1, -1)
      ->option_text("FILE...");
  offer(add_option(app, "--also DELTA", arguments->also,
                   "A delta of one of these files in another folder; may be repeated"),
        kFile);
  add_max_depth(app, arguments->max_depth);
  add_plain(app, arguments->plain);
  arguments->compression.declare(app, all_codecs(), "none, of full files");
  return [arguments](const Session& session) { return run_rebase(*arguments, session); };
}

}  // namespace thalia::cli
