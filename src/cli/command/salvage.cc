// thalia salvage: a new file of what is left of a damaged one, and a list of what is not.
#include "thalia/recover.h"

#include <memory>
#include <string>
#include <string_view>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

struct SalvageArguments {
  std::string input;
  std::string output;
  std::string side_file;
};

std::string_view tables_text(SalvageTables tables) {
  switch (tables) {
    case SalvageTables::header:
      return "the file's own tables";
    case SalvageTables::commit_record:
      return "a commit record in the file, maybe of an older state";
    case SalvageTables::side_file:
      return "the side file";
  }
  return "";
}

void print_text(Output& out, const SalvageArguments& arguments, const SalvageResult& result) {
  if (!result.lost.empty()) {
    Table table({{"lost"}, {"bytes", Table::Align::right}, {"why"}});
    for (const LostTensor& tensor : result.lost)
      table.add_row({escape_name(tensor.name), tensor.bytes == 0 ? "-" : grouped(tensor.bytes),
                     escape(tensor.reason)});
    table.print(out);
  }
  for (const std::string& text : result.lost_texts) out.print("lost: {}\n", escape(text));
  if (!result.fault.empty()) out.print("fault: {}\n", escape(result.fault));
  out.print("{}: {}, {}, from generation {}, by {}; {} lost\n", escape(arguments.output),
            counted(result.tensors, "tensor", "tensors"), human_bytes(result.output_bytes),
            result.generation, tables_text(result.tables), grouped(result.lost.size()));
  if (!result.tables_verified)
    out.write(
        "names and tables are well formed, and not verified: a checksum for them is damaged\n");
}

void print_json(Output& out, const SalvageArguments& arguments, const SalvageResult& result) {
  print_object(out, "thalia.salvage.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.input)).member("output", as_utf8(arguments.output));
    json.member("whole", result.whole()).member("tables", salvage_tables_name(result.tables));
    json.member("fault", as_utf8(result.fault));
    json.member("tables_verified", result.tables_verified);
    json.member("generation", result.generation).member("region_count", result.regions);
    json.member("tensor_count", result.tensors);
    json.key("lost").begin_array();
    for (const LostTensor& tensor : result.lost) {
      json.begin_object().member("name", as_utf8(tensor.name)).member("bytes", tensor.bytes);
      json.member("reason", as_utf8(tensor.reason)).end_object();
    }
    json.end_array();
    add_list(json, "lost_texts", result.lost_texts);
    add_sizes_and_time(json, result);
  });
}

int run_salvage(const SalvageArguments& arguments, const Session& session) {
  ProgressBar bar("saving what is left of " + arguments.input);
  auto options = session.options<SalvageOptions>();
  options.side_file = arguments.side_file;
  options.save.work.progress = bar.callback();
  const SalvageResult result = salvage(arguments.input, arguments.output, options);
  bar.finish();
  session.common.json ? print_json(session.out, arguments, result)
                      : print_text(session.out, arguments, result);
  return result.whole() ? kDone : kFailed;
}

}  // namespace

Run declare_salvage(CLI::App& app) {
  app.description(
      "Writes a new file with each tensor of a damaged or cut .thalia file that is still the one "
      "that was written, by its digest, and lists what is lost and why. Names and places come from "
      "the file's own tables; where these are gone from the side file, or from the copies of the "
      "header that saves and appends leave, which may be of an older state. A file that was cut "
      "has "
      "no names left without one of these two. IN stays as it is. Exit status 0 where nothing is "
      "lost, 1 where something is, 3 where nothing can be got. Where only the header is torn, "
      "recover repairs the file in place.");
  app.footer(
      "Examples:\n  thalia salvage torn.thalia saved.thalia\n  thalia salvage cut.thalia "
      "saved.thalia --side-file archive/run.thalia.meta");
  const auto arguments = std::make_shared<SalvageArguments>();
  add_model(app, "IN", arguments->input, "The damaged file");
  add_file(app, "OUT", arguments->output, "The file to write");
  offer(add_option(app, "--side-file META", arguments->side_file,
                   "What convert wrote to a .thalia.meta of the file; by itself IN.meta, where "
                   "there is one"),
        kFile);
  return [arguments](const Session& session) { return run_salvage(*arguments, session); };
}

}  // namespace thalia::cli
