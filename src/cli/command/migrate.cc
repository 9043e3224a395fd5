// thalia migrate: a file of another version of the format. Losses are reported, never silent.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {
namespace {

struct MigrateArguments {
  std::string input;
  std::string output;
  std::string to;
};

void print_result(const Session& session, const MigrateArguments& arguments,
                  const MigrateResult& result) {
  Output& out = session.out;
  if (!session.common.json) {
    out.print("{}: {} to {}, {}, {} from {} in {:.2f} s\n", escape(arguments.output),
              result.from.to_string(), result.to.to_string(),
              counted(result.tensors, "tensor", "tensors"), human_bytes(result.output_bytes),
              human_bytes(result.input_bytes), result.seconds);
    for (const std::string& warning : result.warnings) {
      out.write(Style::warning, "warning:");
      out.print(" {}\n", escape(warning));
    }
    for (const std::string& loss : result.losses) out.print("lost: {}\n", escape(loss));
    return;
  }
  print_object(out, "thalia.migrate.1", [&](JsonWriter& json) {
    add_files(json, arguments.input, arguments.output);
    json.member("from", result.from.to_string()).member("to", result.to.to_string());
    json.member("tensor_count", result.tensors);
    add_sizes_and_time(json, result);
    add_list(json, "warnings", result.warnings);
    add_list(json, "losses", result.losses);
  });
}

int run_migrate(const MigrateArguments& arguments, const Session& session) {
  const auto version = parse_format_version(arguments.to);
  if (!version) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--to",
                      .value = fmt::format("'{}'", arguments.to),
                      .bound = "a version: 0.1 or 1.0"});
  }
  ProgressBar bar("migrating " + arguments.input);
  // The library wants a confirmation before it loses what an older version cannot hold; anybody who
  // names that version on the command line has given it.
  auto options = session.options<MigrateOptions>();
  options.across_major = true;
  options.save.work.progress = bar.callback();
  const MigrateResult result = migrate(arguments.input, arguments.output, *version, options);
  bar.finish();
  print_result(session, arguments, result);
  return kDone;
}

}  // namespace

Run declare_migrate(CLI::App& app) {
  app.description(
      "Writes a checkpoint as a file of another version of the format: 0.1, the original "
      "program's, or 1.0. Up nothing is lost; down it says what is. An OUT that ends in .zst or "
      ".lz4 is compressed as a whole.");
  const auto arguments = std::make_shared<MigrateArguments>();
  add_model(app, "IN", arguments->input, "The file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  offer(add_option(app, "--to VERSION", arguments->to, "Version of OUT: 0.1 or 1.0")->required(),
        "0.1|1.0");
  return [arguments](const Session& session) { return run_migrate(*arguments, session); };
}

}  // namespace thalia::cli
