// thalia compact
#include "thalia/compact.h"

#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"

namespace thalia::cli {
namespace {

struct CompactArguments {
  std::string file;
  std::string output;
  bool wait = false;
  unsigned threads = 0;
  bool json = false;
};

int run_compact(const CompactArguments& arguments, const Session& session) {
  auto options = session.options<CompactOptions>();
  options.wait = arguments.wait;
  options.work.threads = arguments.threads;
  const std::string& output = arguments.output.empty() ? arguments.file : arguments.output;
  const CompactResult result = compact(arguments.file, output, options);
  if (!arguments.json) {
    session.out.print("{}: {}, {} from {} in {:.2f} s\n", escape(output),
                      counted(result.tensors, "tensor", "tensors"),
                      human_bytes(result.output_bytes), human_bytes(result.input_bytes),
                      result.seconds);
    return kDone;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("output", as_utf8(output)).member("regions", result.regions);
  json.member("tensors", result.tensors).member("input_bytes", result.input_bytes);
  json.member("output_bytes", result.output_bytes).member("seconds", result.seconds).end_object();
  session.out.write(text + "\n");
  return kDone;
}

}  // namespace

Run declare_compact(CLI::App& app) {
  app.description(
      "Writes a file anew without the dead bytes that appends left, tensors as they are stored, "
      "and\n"
      "puts it in the old one's place whole. Every byte is verified on the way.");
  const auto arguments = std::make_shared<CompactArguments>();
  app.add_option("FILE", arguments->file, "The file to compact")->required();
  app.add_option("OUT", arguments->output, "Write to this file, and leave FILE as it is");
  app.add_flag("--wait", arguments->wait, "Wait for whoever changes the file now");
  app.add_option("--threads", arguments->threads,
                 "Threads that hash and write; 0, the default: one a core")
      ->option_text("N");
  app.add_flag("--json", arguments->json, "What was done as a JSON object");
  return [arguments](const Session& session) { return run_compact(*arguments, session); };
}

}  // namespace thalia::cli
