// thalia set: members of a file's metadata, in place.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/edited.h"
#include "cli/terminal/escape.h"
#include "thalia/edit_file.h"

namespace thalia::cli {
namespace {

struct SetArguments {
  std::string file;
  std::vector<std::string> members;
  std::vector<std::string> removed;
  std::optional<std::uint64_t> step;
};

// What is JSON is that, and all else a text.
Value value_of(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const FormatError&) {
    return text;
  }
}

MetadataMember member_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(
        ErrorCode::bad_argument, {},
        {.field = "KEY=VALUE", .value = escape(text), .bound = "a key, '=' and a value"});
  }
  return {text.substr(0, equals), value_of(text.substr(equals + 1))};
}

int run_set(const SetArguments& arguments, const Session& session) {
  std::vector<MetadataMember> members;
  for (const std::string& text : arguments.members) members.push_back(member_of(text));
  for (const std::string& key : arguments.removed) members.push_back({key, std::nullopt});
  if (members.empty() && !arguments.step) {
    throw UsageError(ErrorCode::bad_argument, "there is nothing to set",
                     {.field = "KEY=VALUE", .bound = "a key and a value, --unset, or --step"});
  }
  print_edit(
      session, "thalia.set.1", arguments.file, "set",
      set_in_file(arguments.file, members, arguments.step, session.options<AppendOptions>()));
  return kDone;
}

}  // namespace

Run declare_set(CLI::App& app) {
  app.description(
      "Sets members of a file's metadata, in place. A key goes through objects by its dots: "
      "training.lr=0.001. A value that is JSON is taken as that, any other as text. A crash leaves "
      "the old state or the new one.");
  const auto arguments = std::make_shared<SetArguments>();
  add_file(app, "FILE", arguments->file, "The file to change");
  app.add_option("KEY=VALUE", arguments->members, "What to set");
  add_option(app, "--unset KEY", arguments->removed, "Remove this member; may be repeated");
  add_option(app, "--step N", arguments->step, "Training steps in the header");
  return [arguments](const Session& session) { return run_set(*arguments, session); };
}

}  // namespace thalia::cli
