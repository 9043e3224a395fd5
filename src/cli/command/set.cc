// thalia set: members of a file's metadata, in place.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/edited.h"
#include "cli/print/json_result.h"
#include "cli/terminal/escape.h"
#include "thalia/files.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/edit.h"

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

constexpr std::array kEdits{std::pair(SafetensorsEdit::unchanged, "unchanged"),
                            std::pair(SafetensorsEdit::cloned, "cloned"),
                            std::pair(SafetensorsEdit::in_place, "in_place"),
                            std::pair(SafetensorsEdit::rewritten, "rewritten")};

// As of a .thalia file; the library takes a key that is gone already for done.
void check_is_there(const std::string& file, const std::string& key, const Session& session) {
  const SafetensorsFile opened = SafetensorsFile::open(file, session.options<ReadOptions>());
  const SafetensorsMetadata& texts = opened.metadata();
  if (std::ranges::find(texts, key, &SafetensorsMetadata::value_type::first) != texts.end()) return;
  throw UsageError(ErrorCode::not_found, "the metadata has no such member",
                   {.path = file, .section = "metadata", .field = "key", .value = escape(key)});
}

// All values are texts there.
int set_texts(const SetArguments& arguments, const Session& session) {
  if (arguments.step) {
    throw UsageError(ErrorCode::bad_argument, "safetensors files have no count of steps",
                     {.field = "--step", .value = std::to_string(*arguments.step)});
  }
  SafetensorsMetadataChanges changes;
  std::vector<std::string> keys;
  for (const std::string& text : arguments.members) {
    keys.push_back(member_of(text).key);
    changes.emplace_back(keys.back(), text.substr(text.find('=') + 1));
  }
  for (const std::string& key : arguments.removed) {
    keys.push_back(key);
    changes.emplace_back(key, std::nullopt);
  }
  for (const std::string& key : arguments.removed) check_is_there(arguments.file, key, session);
  auto options = session.options<SafetensorsEditOptions>();
  options.output.replace = true;  // it is the file that is to change
  const SafetensorsEdit edit = edit_safetensors_metadata(arguments.file, changes, options);
  const std::string how =
      std::ranges::find(kEdits, edit, &decltype(kEdits)::value_type::first)->second;
  if (session.common.json) {
    print_object(session.out, "thalia.set.1", [&](JsonWriter& json) {
      json.member("path", as_utf8(arguments.file));
      add_list(json, "set", keys);
      json.member("edit", how).member("file_bytes", file_bytes(arguments.file));
    });
    return kDone;
  }
  session.out.print("{}: {} set, {}\n", escape(arguments.file), keys.size(),
                    how == "in_place" ? "in place" : how);
  for (const std::string& key : keys) session.out.print("  {}\n", escape_name(key));
  return kDone;
}

int run_set(const SetArguments& arguments, const Session& session) {
  std::vector<MetadataMember> members;
  for (const std::string& text : arguments.members) members.push_back(member_of(text));
  for (const std::string& key : arguments.removed) members.push_back({key, std::nullopt});
  if (members.empty() && !arguments.step) {
    throw UsageError(ErrorCode::bad_argument, "there is nothing to set",
                     {.field = "KEY=VALUE", .bound = "a key and a value, --unset, or --step"});
  }
  if (detect_format(arguments.file, session.access()) == FileFormat::safetensors)
    return set_texts(arguments, session);
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
      "the old state or the new one. In a .safetensors file it sets texts, without writing its "
      "tensors again where the header has room and the disk allows.");
  const auto arguments = std::make_shared<SetArguments>();
  add_model(app, "FILE", arguments->file, "The file to change");
  // No name with a "=": newer versions of CLI11 refuse it.
  app.add_option("MEMBER", arguments->members, "What to set, as KEY=VALUE");
  add_option(app, "--unset KEY", arguments->removed, "Remove this member; may be repeated");
  add_option(app, "--step N", arguments->step, "Training steps in the header");
  return [arguments](const Session& session) { return run_set(*arguments, session); };
}

}  // namespace thalia::cli
