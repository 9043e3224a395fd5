// thalia help: the table of all commands, and one of them at length. The table is the only list of
// commands: dispatch, help, the manual page and the completion of shells are all made from it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/wrap.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

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

// One line each, or more where what it does needs more.
void add_list_of(std::string& text, const std::vector<Command>& listed) {
  for (const Command& command : listed) {
    const std::string usage = fmt::format("{} {}", command.name, command.arguments);
    fmt::format_to(std::back_inserter(text), "  {:<{}}", usage, kUsageWidth - 2);
    std::string brief = wrapped(command.brief, kHelpWidth - kUsageWidth);
    if (usage.size() > kUsageWidth - 4) brief.insert(0, "\n");
    for (const char letter : brief) {
      if (letter == '\n') text.erase(text.find_last_not_of(' ') + 1);
      text += letter;
      if (letter == '\n') text.append(kUsageWidth, ' ');
    }
    text += '\n';
  }
}

// What a shell can offer: the last word of each name.
std::string last_words(const std::vector<Command>& listed) {
  std::string words;
  for (const Command& command : listed) {
    if (!words.empty()) words += '|';
    words += command.name.substr(command.name.rfind(' ') + 1);
  }
  return words;
}

// A command, and all of the group if it is the name of one.
std::vector<Command> with_group(const Command& command) {
  std::vector<Command> shown{command};
  for (const Command& one : commands_of(command.name)) shown.push_back(one);
  return shown;
}

}  // namespace

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
  add_list_of(text, commands_of(""));
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
      "or the one: the manual page and the completion are made of that.");
  struct Words {
    std::string first, second;
  };
  const auto words = std::make_shared<Words>();
  std::string second;
  for (const Command& group : commands_of(""))
    if (const auto listed = commands_of(group.name); !listed.empty()) second += last_words(listed);
  offer(app.add_option("COMMAND", words->first, "The command to show"),
        last_words(commands_of("")));
  offer(app.add_option("WORD", words->second, "Where its name has two words, the second one"),
        second);
  return [words](const Session& session) -> int {
    const std::string name =
        words->second.empty() ? words->first : words->first + " " + words->second;
    if (session.common.json) {
      name.empty() ? print_tree(session.out, commands())
                   : print_tree(session.out, with_group(require_command(name)));
    } else {
      print_help(session.out,
                 name.empty() ? overview() : declare(require_command(name)).app->help());
    }
    return kDone;
  };
}

Run declare_group(CLI::App& app) {
  const std::string name = app.get_name().substr(app.get_name().rfind(' ') + 1);
  app.description(
      fmt::format("Lists the commands of this group, with --json at length; 'thalia help {} "
                  "COMMAND' shows one.",
                  name));
  std::string list = "Commands:\n";
  add_list_of(list, commands_of(name));
  list.pop_back();
  app.footer(list);
  const auto word = std::make_shared<std::string>();
  offer(app.add_option("COMMAND", *word, "One of the group, with its own arguments after it"),
        last_words(commands_of(name)));
  return [name, word](const Session& session) -> int {
    // After an option; its arguments would not be known here.
    if (!word->empty())
      throw UsageError(
          ErrorCode::bad_argument,
          fmt::format("options come after the command: thalia {} {} ... --json", name, *word),
          {.field = "COMMAND"});
    const Command& group = require_command(name);
    session.common.json ? print_tree(session.out, with_group(group))
                        : print_help(session.out, declare(group).app->help());
    return kDone;
  };
}

}  // namespace thalia::cli
