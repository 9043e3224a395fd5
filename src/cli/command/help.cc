// thalia help: the table of all commands, and one of them at length. The table is the only list of
// commands: dispatch, help, the manual page and the completion of shells are all made from it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/suggestion.h"
#include "cli/command/command.h"
#include "cli/print/wrap.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

constexpr std::array kCommands{
    Command{"info", "FILE", "what it is: parameters, dtypes, steps, sizes, metadata",
            kFiles | kJson | kPages, declare_info},
    Command{"ls", "FILE [PATTERN...]", "regions, all tensors, or those that patterns fit",
            kFiles | kJson | kPages, declare_ls},
    Command{"cat", "FILE TENSOR", "tensors or slices of them, as text, json, npy or raw",
            kChains | kOutput | kPages, declare_cat},
    Command{"stats", "FILE [PATTERN...]", "range, moments, zeros and NaN of each tensor",
            kChains | kThreads | kJson | kPages, declare_stats},
    Command{"verify", "FILE...", "everything that can be wrong, every finding named",
            kChains | kThreads | kJson, declare_verify},
    Command{"convert", "IN OUT", "from one format to another",
            kChains | kThreads | kJson | kOutput | kStamp, declare_convert},
    Command{"migrate", "IN OUT --to VERSION", "to another version of the format, 0.1 or 1.0",
            kFiles | kJson | kOutput | kStamp, declare_migrate},
    Command{"extract", "FILE --regions A,B OUT", "some regions into a file of their own",
            kChains | kThreads | kJson | kOutput | kStamp, declare_extract},
    Command{"merge", "A B... -o OUT", "several checkpoints in one, conflicts named",
            kFiles | kThreads | kJson | kOutput | kStamp, declare_merge},
    Command{"diff", "A B [PATTERN...]", "what changed; with --values by how much",
            kChains | kThreads | kJson | kPages, declare_diff},
    Command{"log", "FILE", "a delta and all that it is based on: steps, times, sizes",
            kChains | kJson | kPages, declare_log},
    Command{"grow", "FILE REGION --neurons N", "neurons added to a region, in place",
            kFiles | kWait | kThreads | kJson | kStamp, declare_grow},
    Command{"set", "FILE KEY=VALUE...", "members of the metadata, in place",
            kFiles | kWait | kJson | kStamp, declare_set},
    Command{"rename", "FILE TENSOR NAME", "another name for a tensor, in place",
            kFiles | kWait | kThreads | kJson | kStamp, declare_rename},
    Command{"rm", "FILE PATTERN...", "regions and tensors left out, in place",
            kFiles | kWait | kThreads | kJson | kStamp, declare_rm},
    Command{"append", "FILE FROM --regions A,B", "regions of another file, added or replaced",
            kFiles | kWait | kThreads | kJson | kStamp, declare_append},
    Command{"compact", "FILE [OUT]", "without the bytes that appends left unused",
            kFiles | kWait | kThreads | kJson | kOutput | kStamp, declare_compact},
    Command{"recover", "FILE", "a header that a crash damaged, from its copies",
            kFiles | kWait | kThreads | kJson, declare_recover},
    Command{"salvage", "IN OUT", "what is sound of a damaged file, as a new one",
            kFiles | kThreads | kJson | kOutput | kStamp, declare_salvage},
    Command{"compress", "IN OUT", "a whole file in zstd or lz4 frames, still readable",
            kFiles | kThreads | kJson | kOutput, declare_compress},
    Command{"decompress", "IN OUT", "the exact file out of such frames",
            kFiles | kThreads | kJson | kOutput, declare_decompress},
    Command{"delta", "BASE NEW OUT", "what changed between two checkpoints, as a file",
            kChains | kThreads | kJson | kOutput | kStamp, declare_delta},
    Command{"resolve", "DELTA OUT", "the full file of a delta and its bases",
            kChains | kThreads | kJson | kOutput | kStamp, declare_resolve},
    Command{"quantize", "IN OUT", "weights as codes of a few bits, with the error that it makes",
            kFiles | kThreads | kJson | kOutput | kStamp, declare_quantize},
    Command{"prune", "IN OUT", "without dead synapses, or silent neurons",
            kChains | kThreads | kJson | kOutput | kStamp, declare_prune},
    Command{"plot", "KIND FILE... -o OUT", "pictures: growth, weights, diff, chain; SVG or PNG",
            kChains | kThreads | kOutput, declare_plot},
    Command{"report", "FILE [BASE] -o OUT.html", "all about a checkpoint as one web page",
            kChains | kThreads | kOutput, declare_report},
    Command{"bench", "[--dir D]", "speed of saving and loading beside disk and memory",
            kThreads | kJson, declare_bench},
    Command{"version", "", "versions of library and format, codecs", kJson, declare_version},
    Command{"help", "[COMMAND]", "this list, or one command at length", kJson | kPages,
            declare_help},
};

constexpr std::size_t kHelpWidth = 80, kOptionWidth = 28, kUsageWidth = 35;

// CLI11's own layout names types and repeats "REQUIRED"; the line of usage says that better.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    label("Positionals", "Arguments");
    column_width(kOptionWidth);
  }
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    std::string text =
        fmt::format("Usage: {}\n\n{}\n{}{}", usage_, wrapped(app->get_description(), kHelpWidth),
                    make_positionals(app), make_groups(app, mode));
    // One empty line between groups of options.
    for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    text.erase(text.find_last_not_of('\n') + 1);
    const std::string footer = app->get_footer();
    return text + (footer.empty() ? "\n" : "\n\n" + wrapped(footer, kHelpWidth) + "\n");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), kHelpWidth - kOptionWidth);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string& value = option->get_option_text();
    return value.empty() ? "" : " " + value;
  }

 private:
  std::string usage_;
};

void add_option_json(JsonWriter& json, const CLI::Option& option) {
  json.begin_object();
  if (option.get_positional()) {
    json.member("name", option.get_name());
  } else {
    json.key("names").begin_array();
    for (const std::string& name : option.get_snames()) json.value("-" + name);
    for (const std::string& name : option.get_lnames()) json.value("--" + name);
    json.end_array();
  }
  json.member("value", option.get_option_text()).member("help", option.get_description());
  json.member("group", option.get_group()).member("required", option.get_required());
  json.member("takes_value", option.get_items_expected_max() > 0);
  json.member("several", option.get_items_expected_max() > 1).key("offers").begin_array();
  std::string words = offered(option);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('|'), words.size());
    json.value(words.substr(0, end));
    words.erase(0, end + 1);
  }
  json.end_array().end_object();
}

// What each command does and takes, for the programs that make the manual page and the completion.
void print_tree(Output& out, std::span<const Command> shown) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", "thalia.help.1").key("commands").begin_array();
  for (const Command& command : shown) {
    const Declared declared = declare(command);
    const CLI::App& app = *declared.app;
    json.begin_object().member("name", command.name).member("usage", command.arguments);
    json.member("brief", command.brief).member("description", app.get_description());
    json.member("notes", app.get_footer());
    for (const bool positional : {true, false}) {
      json.key(positional ? "arguments" : "options").begin_array();
      for (const CLI::Option* option : app.get_options()) {
        if (option->get_positional() == positional) add_option_json(json, *option);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().end_object();
  out.write(text + "\n");
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

const Command& require_command(std::string_view name) {
  if (const Command* command = find_command(name)) return *command;
  std::string hint = suggestion_among(name, kCommands, &Command::name);
  if (hint.empty()) hint = ", 'thalia help' lists the commands";
  throw UsageError(ErrorCode::not_found, fmt::format("no command '{}'{}", name, hint));
}

Declared declare(const Command& command) {
  Declared declared;
  declared.app = std::make_unique<CLI::App>();
  CLI::App& app = *declared.app;
  app.name(fmt::format("thalia {}", command.name));
  const bool spaced = !command.arguments.empty();
  app.formatter(std::make_shared<HelpFormatter>(fmt::format(
      "thalia {}{}{} [OPTION]...", command.name, spaced ? " " : "", command.arguments)));
  app.set_help_flag("-h,--help", "Print this and leave");
  declared.run = command.declare(app);
  declared.common = std::make_shared<CommonArguments>();
  declared.common->declare(app, command.takes);
  return declared;
}

std::string overview() {
  std::string text = fmt::format(
      "thalia {}: checkpoints of neural networks\n\n"
      "Usage: thalia COMMAND [OPTION]... [ARGUMENT]...\n\n",
      library_version());
  for (const Command& command : kCommands) {
    const std::string usage = fmt::format("{} {}", command.name, command.arguments);
    fmt::format_to(std::back_inserter(text), "  {:<{}}", usage, kUsageWidth - 2);
    for (const char letter : wrapped(command.brief, kHelpWidth - kUsageWidth)) {
      text += letter;
      if (letter == '\n') text.append(kUsageWidth, ' ');
    }
    text += '\n';
  }
  text +=
      "\n'thalia help COMMAND' shows its options. Commands that print facts take --json.\n"
      "Exit status: 0 done; 1 a check failed or files differ; 2 wrong usage; 3 a file\n"
      "could not be read or written, or is not valid.\n";
  return text;
}

void print_help(Output& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool is_heading = line.ends_with(':') && line.front() != ' ';
    is_heading ? out.write(Style::heading, line) : out.write(line);
    if (end < text.size()) out.write("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Run declare_help(CLI::App& app) {
  app.description(
      "Lists the commands, or shows what one of them does and takes. With --json, for all of them "
      "or "
      "the one: the manual page and the completion are made of that.");
  const auto name = std::make_shared<std::string>();
  std::string names;
  for (const Command& command : kCommands)
    names += fmt::format("{}{}", names.empty() ? "" : "|", command.name);
  offer(app.add_option("COMMAND", *name, "The command to show"), names);
  return [name](const Session& session) -> int {
    const std::span<const Command> shown =
        name->empty() ? kCommands : std::span(&require_command(*name), 1);
    if (session.common.json) {
      print_tree(session.out, shown);
    } else {
      print_help(session.out, name->empty() ? overview() : declare(shown.front()).app->help());
    }
    return kDone;
  };
}

}  // namespace thalia::cli
