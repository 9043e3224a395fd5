// thalia log: a checkpoint and all that it is based on, the newest first. Headers say all of it: no
// payload is read.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/tensor/file_format.h"
#include "cli/tensor/packed_file.h"
#include "cli/terminal/escape.h"
#include "thalia/delta.h"
#include "thalia/error.h"
#include "thalia/mckp.h"
#include "thalia/paths.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

struct Link {
  std::string name;  ///< a path, or the key of a checkpoint in a store
  bool is_delta = false;
  std::optional<std::uint64_t> steps;
  std::optional<std::uint64_t> timestamp;
  std::uint64_t disk_bytes = 0;
};

std::vector<Link> links_of(const std::filesystem::path& path, const ChainOptions& options) {
  std::vector<Link> links;
  for (const std::filesystem::path& file : ChainReader::open(path, options).paths()) {
    const Reader reader = Reader::open(file, options.read);
    const FileHeader header = reader.header();
    links.push_back({.name = file.string(),
                     .is_delta = reader.delta_base().has_value(),
                     .steps = header.training_steps,
                     .timestamp = header.timestamp,
                     .disk_bytes = file_bytes(file)});
  }
  return links;
}

std::vector<Link> links_of_mckp(const std::filesystem::path& path, const ChainOptions& options) {
  std::vector<Link> links;
  std::string name = path.string();
  for (const MckpFile& file : MckpChain::open(path, mckp_options(options)).files()) {
    const MckpHeader& header = file.header();
    links.push_back({.name = name,
                     .is_delta = header.previous.has_value(),
                     .steps = header.training_step,
                     .timestamp = std::nullopt,
                     .disk_bytes = file.file_bytes()});
    if (header.previous) name = header.previous->key;
  }
  return links;
}

std::string_view kind_of(const Link& link) {
  return link.is_delta ? "delta" : "full";
}

void print_links(Output& out, const std::vector<Link>& links) {
  using enum Table::Align;
  Table table({{"step", right}, {"saved"}, {"kind"}, {"size", right}, {"file"}});
  std::uint64_t bytes = 0;
  for (const Link& link : links) {
    table.add_row({link.steps ? grouped(*link.steps) : "-",
                   link.timestamp ? utc_time(*link.timestamp) : "-", std::string(kind_of(link)),
                   human_bytes(link.disk_bytes), escape(link.name)});
    bytes += link.disk_bytes;
  }
  table.print(out);
  if (links.size() > 1)
    out.print("{} in {}\n", human_bytes(bytes), counted(links.size(), "file", "files"));
}

void print_links_json(Output& out, FileFormat format, const std::vector<Link>& links) {
  print_object(out, "thalia.log.1", [&](JsonWriter& json) {
    json.member("format", file_format_name(format)).key("files").begin_array();
    for (const Link& link : links) {
      json.begin_object().member("path", as_utf8(link.name)).member("kind", kind_of(link));
      add_known(json, "training_steps", link.steps);
      add_known(json, "timestamp", link.timestamp);
      json.member("disk_bytes", link.disk_bytes).end_object();
    }
    json.end_array();
  });
}

int run_log(const std::string& path, const Session& session) {
  const auto options = session.options<ChainOptions>();
  const FileFormat format = format_of(path);
  if (format != FileFormat::thalia && format != FileFormat::mckp) {
    throw UsageError(ErrorCode::bad_argument,
                     fmt::format("log shows what .thalia and .mckp files are based on, not {}",
                                 file_format_name(format)),
                     {.path = path});
  }
  const std::vector<Link> links =
      format == FileFormat::mckp ? links_of_mckp(path, options) : links_of(path, options);
  session.common.json ? print_links_json(session.out, format, links)
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
  add_file(app, "FILE", *path, "A delta, or a full checkpoint");
  return [path](const Session& session) { return run_log(*path, session); };
}

}  // namespace thalia::cli
