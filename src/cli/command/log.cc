// thalia log: a checkpoint and all that it is based on, the newest first. Headers say all of it: no
// payload is read.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "inspect/file_tensors.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/delta.h"

namespace thalia::cli {
namespace {

void print_links(Output& out, const std::vector<LinkFacts>& links) {
  using enum Table::Align;
  Table table({{"step", right}, {"saved"}, {"kind"}, {"size", right}, {"file"}});
  std::uint64_t bytes = 0;
  for (const LinkFacts& link : links) {
    table.add_row({link.training_steps ? grouped(*link.training_steps) : "-",
                   link.timestamp ? utc_time(*link.timestamp) : "-", std::string(link.kind()),
                   human_bytes(link.disk_bytes), escape(link.name)});
    bytes += link.disk_bytes;
  }
  table.print(out);
  if (links.size() > 1)
    out.print("{} in {}\n", human_bytes(bytes), counted(links.size(), "file", "files"));
}

void print_links_json(Output& out, FileFormat format, const std::vector<LinkFacts>& links) {
  print_object(out, "thalia.log.1", [&](JsonWriter& json) {
    json.member("format", file_format_name(format)).key("files").begin_array();
    for (const LinkFacts& link : links) {
      json.begin_object().member("path", as_utf8(link.name)).member("kind", link.kind());
      add_known(json, "training_steps", link.training_steps);
      add_known(json, "timestamp", link.timestamp);
      json.member("disk_bytes", link.disk_bytes).end_object();
    }
    json.end_array();
  });
}

int run_log(const std::string& path, const Session& session) {
  const auto options = session.options<ChainOptions>();
  const AnyFile file = inspect::open_stored(path, options);
  const std::vector<LinkFacts> links = file.links();
  session.common.json ? print_links_json(session.out, file.format(), links)
                      : print_links(session.out, links);
  return kDone;
}

}  // namespace

Run declare_log(CLI::App& app) {
  app.description(
      "Shows a checkpoint and all that it is based on, the newest first, down to the full file: "
      "the training step, when it was saved, whether it is a delta, and its size. A base that is "
      "not where the delta looks for it is an error that names every place; --search adds places.");
  const auto path = std::make_shared<std::string>();
  add_model(app, "FILE", *path, "A delta, or a full checkpoint");
  return [path](const Session& session) { return run_log(*path, session); };
}

}  // namespace thalia::cli
