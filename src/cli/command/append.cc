// thalia append
#include "thalia/append.h"

#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/command/region_names.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct AppendArguments {
  std::string file;
  std::string from;
  std::string regions;
  bool wait = false;
  unsigned threads = 0;
  bool json = false;
};

int run_append(const AppendArguments& arguments, const Session& session) {
  ProgressBar bar("appending to " + arguments.file);
  auto read = session.options<ReadOptions>();
  read.work.threads = arguments.threads;
  const Reader from = Reader::open(arguments.from, read);
  auto options = session.options<AppendOptions>();
  options.wait = arguments.wait;
  options.work.threads = arguments.threads;
  options.work.progress = bar.callback();
  Appender appender(arguments.file, options);
  const std::vector<std::string> names = region_names(arguments.regions, arguments.from, read);
  for (const std::string& name : names) appender.copy_region(from.region(name));
  const AppendResult result = appender.commit();
  bar.finish();
  if (!arguments.json) {
    session.out.print("{}: {}, {} appended, {} dead, generation {}, in {:.2f} s\n",
                      escape(arguments.file), counted(names.size(), "region", "regions"),
                      human_bytes(result.appended_bytes), human_bytes(result.dead_bytes),
                      result.generation, result.seconds);
    return kDone;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("path", as_utf8(arguments.file)).member("regions", result.regions);
  json.member("tensors", result.tensors).member("file_bytes", result.file_bytes);
  json.member("appended_bytes", result.appended_bytes).member("dead_bytes", result.dead_bytes);
  json.member("generation", result.generation).member("seconds", result.seconds).end_object();
  session.out.write(text + "\n");
  return kDone;
}

}  // namespace

Run declare_append(CLI::App& app) {
  app.description(
      "Takes over regions of another file, in place: a region of that name is replaced, others "
      "are\n"
      "added. Connections of FILE stay. A crash leaves the old state or the new one; readers are "
      "not\n"
      "disturbed. What is replaced stays in the file as dead bytes until it is compacted.");
  const auto arguments = std::make_shared<AppendArguments>();
  app.add_option("FILE", arguments->file, "The file to append to")->required();
  app.add_option("FROM", arguments->from, "The file to read")->required();
  app.add_option("--regions", arguments->regions,
                 "Names of regions, separated by commas; a comma in a name is \\x2c")
      ->required()
      ->option_text("A,B");
  app.add_flag("--wait", arguments->wait, "Wait for whoever changes the file now");
  app.add_option("--threads", arguments->threads, "Threads that hash; 0, the default: one a core")
      ->option_text("N");
  app.add_flag("--json", arguments->json, "What was done as a JSON object");
  return [arguments](const Session& session) { return run_append(*arguments, session); };
}

}  // namespace thalia::cli
