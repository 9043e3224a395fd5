// thalia recover: puts back a header that a torn write damaged. Only the header is written; what
// the restored state is worth is checked and reported.
#include "thalia/recover.h"

#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

struct RecoverArguments {
  std::string file;
};

void print_text(Output& out, const std::string& file, const RecoverResult& result) {
  const std::string path = escape(file);
  if (!result.restored) {
    out.print("{}: the header holds, generation {}, {}\n", path, result.generation,
              human_bytes(result.file_bytes));
  } else {
    out.print("{}: the header was damaged: {}\n", path, escape(result.fault));
    out.print("{}: restored generation {}, {}, from the commit record at offset {}\n", path,
              result.generation, human_bytes(result.file_bytes), result.record_offset);
  }
  if (result.damaged_blocks > 0)
    out.print("{}: {} damaged, 'thalia verify' tells what is in them\n", path,
              counted(result.damaged_blocks, "block", "blocks"));
  if (result.debris_bytes > 0)
    out.print("{}: {} of debris after the end\n", path, human_bytes(result.debris_bytes));
}

void print_json(Output& out, const std::string& file, const RecoverResult& result) {
  print_object(out, "thalia.recover.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(file)).member("restored", result.restored);
    json.key("fault");
    result.restored ? json.value(as_utf8(result.fault)) : json.null();
    json.member("generation", result.generation).member("file_bytes", result.file_bytes);
    json.key("record_offset");
    result.restored ? json.value(result.record_offset) : json.null();
    json.member("records", result.records).member("damaged_blocks", result.damaged_blocks);
    json.member("debris_bytes", result.debris_bytes);
  });
}

int run_recover(const RecoverArguments& arguments, const Session& session) {
  auto options = session.options<RecoverOptions>();
  const RecoverResult result = recover(arguments.file, options);
  session.common.json ? print_json(session.out, arguments.file, result)
                      : print_text(session.out, arguments.file, result);
  return result.damaged_blocks == 0 ? kDone : kFailed;
}

}  // namespace

Run declare_recover(CLI::App& app) {
  app.description(
      "Repairs a file whose header a crash during an append left torn: the newest copy of a header "
      "whose checksum holds is written over it. A header that holds is left alone. Exit status 1 "
      "where the state that was restored has damage of its own.");
  const auto arguments = std::make_shared<RecoverArguments>();
  add_model(app, "FILE", arguments->file, "The file to repair");
  return [arguments](const Session& session) { return run_recover(*arguments, session); };
}

}  // namespace thalia::cli
