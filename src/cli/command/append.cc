// thalia append: regions of one file into another. Appender does it as one commit, so a crash
// leaves the old state or the new one.
#include "thalia/append.h"

#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/options/region_names.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct AppendArguments {
  std::string file;
  std::string from;
  std::string regions;
};

int run_append(const AppendArguments& arguments, const Session& session) {
  ProgressBar bar("appending to " + arguments.file);
  const auto chain = session.options<ChainOptions>();
  const ResolvedFile opened(arguments.from, folder_of(arguments.file), chain);
  const Reader& from = opened.reader();
  auto options = session.options<AppendOptions>();
  options.change.work.progress = bar.callback();
  Appender appender(arguments.file, options);
  const std::vector<std::string> names =
      region_names(arguments.regions, arguments.from, chain.read);
  for (const std::string& name : names) appender.copy_region(from.region(name));
  const AppendResult result = appender.commit();
  bar.finish();
  if (!session.common.json) {
    session.out.print("{}: {}, {} appended, {} dead, generation {}, in {:.2f} s\n",
                      escape(arguments.file), counted(names.size(), "region", "regions"),
                      human_bytes(result.appended_bytes), human_bytes(result.dead_bytes),
                      result.generation, result.seconds);
    return kDone;
  }
  print_object(session.out, "thalia.append.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.file)).member("region_count", result.regions);
    json.member("tensor_count", result.tensors);
    add_append(json, result);
  });
  return kDone;
}

}  // namespace

Run declare_append(CLI::App& app) {
  app.description(
      "Takes over regions of another file, in place: a region of that name is replaced, others are "
      "added. Connections of FILE stay. A crash leaves the old state or the new one; readers are "
      "not disturbed. What is replaced stays in the file as dead bytes until it is compacted.");
  const auto arguments = std::make_shared<AppendArguments>();
  add_model(app, "FILE", arguments->file, "The file to append to");
  add_model(app, "FROM", arguments->from, "The file to read");
  add_region_names(app, arguments->regions, kRegionsOfSecond)->required();
  return [arguments](const Session& session) { return run_append(*arguments, session); };
}

}  // namespace thalia::cli
