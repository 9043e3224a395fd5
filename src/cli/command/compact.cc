// thalia compact: writes the file anew without dead bytes, then replaces it whole.
#include "thalia/append.h"

#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

struct CompactArguments {
  std::string file;
  std::string output;
};

int run_compact(const CompactArguments& arguments, const Session& session) {
  auto options = session.options<ChangeOptions>();
  const bool in_place = arguments.output.empty();
  const std::string& output = in_place ? arguments.file : arguments.output;
  if (in_place) options.output.replace = true;
  const CompactResult result = compact(arguments.file, output, options);
  if (!session.common.json) {
    session.out.print("{}: {}, {} from {} in {:.2f} s\n", escape(output),
                      counted(result.tensors, "tensor", "tensors"),
                      human_bytes(result.output_bytes), human_bytes(result.input_bytes),
                      result.seconds);
    return kDone;
  }
  print_object(session.out, "thalia.compact.1", [&](JsonWriter& json) {
    add_files(json, arguments.file, output);
    json.member("region_count", result.regions).member("tensor_count", result.tensors);
    add_sizes_and_time(json, result);
  });
  return kDone;
}

}  // namespace

Run declare_compact(CLI::App& app) {
  app.description(
      "Writes a file anew without the dead bytes that appends left, tensors as they are stored, "
      "and puts it in the old one's place whole. Every byte is verified on the way.");
  const auto arguments = std::make_shared<CompactArguments>();
  add_model(app, "FILE", arguments->file, "The file to compact");
  offer(app.add_option("OUT", arguments->output, "Write to this file, and leave FILE as it is"),
        kFile);
  return [arguments](const Session& session) { return run_compact(*arguments, session); };
}

}  // namespace thalia::cli
