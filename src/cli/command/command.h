// What every command is made of. The only place that knows CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/option.h"
#include "cli/terminal/session.h"

namespace thalia::cli {

/// Exit statuses of the program.
enum Exit : int {
  kDone = 0,
  kFailed = 1,      ///< a check failed, or things differ
  kWrongUsage = 2,  ///< of the command line
  kUnreadable = 3,  ///< a file could not be read or written, or is not valid
};

/// Carries out one command whose options are parsed, and returns an exit status. Errors are thrown.
/// It runs with signals held back (StopOnSignal), and ends when the session's stop is requested.
using Run = std::function<int(const Session& session)>;

struct Command {
  std::string_view name;       ///< one word; or two, of which the first is a group's: "store init"
  std::string_view arguments;  ///< as in the table of commands: "FILE [REGION]"
  std::string_view brief;
  unsigned takes;  ///< of what Takes lists
  /// Declares the options, and returns what to run once they are parsed.
  Run (*declare)(CLI::App& app);
};

/// All of them, in the order in which help lists them.
std::span<const Command> commands();
/// Those of a group, whose name is a command too; of "", those that are in none.
std::vector<Command> commands_of(std::string_view group);
/// Takes the name of a command off the words: two where the first one is a group's and another
/// follows. There is one word at least.
std::string take_command_name(std::vector<std::string>& words);
/// nullptr if no command has that name.
const Command* find_command(std::string_view name);
/// @throws UsageError naming the nearest command if no command has the name.
const Command& require_command(std::string_view name);

/// The command's options, and what to run once they are parsed.
struct Declared {
  std::unique_ptr<CLI::App> app;
  Run run;
  std::shared_ptr<CommonArguments> common;  ///< as they are parsed
};
Declared declare(const Command& command);

/// Prints the names of a file that a shell can offer: KIND ("tensor", "region", or "regions" for a
/// list with commas; of a run "phase" or "gate"), FILE, and how the names begin. @return kDone also
/// if there are none.
int complete_names(const std::vector<std::string>& words, const Session& session);

/// What `thalia help` prints.
std::string overview();
/// Prints overview(), or the help of one command: headings are lines that end in a colon.
void print_help(Output& out, std::string_view text);

Run declare_info(CLI::App& app);
Run declare_ls(CLI::App& app);
Run declare_cat(CLI::App& app);
Run declare_stats(CLI::App& app);
Run declare_verify(CLI::App& app);
Run declare_convert(CLI::App& app);
Run declare_migrate(CLI::App& app);
Run declare_extract(CLI::App& app);
Run declare_log(CLI::App& app);
Run declare_merge(CLI::App& app);
Run declare_diff(CLI::App& app);
Run declare_grow(CLI::App& app);
Run declare_plot(CLI::App& app);
Run declare_report(CLI::App& app);
Run declare_set(CLI::App& app);
Run declare_rename(CLI::App& app);
Run declare_rm(CLI::App& app);
Run declare_append(CLI::App& app);
Run declare_compact(CLI::App& app);
Run declare_recover(CLI::App& app);
Run declare_salvage(CLI::App& app);
Run declare_compress(CLI::App& app);
Run declare_decompress(CLI::App& app);
Run declare_delta(CLI::App& app);
Run declare_resolve(CLI::App& app);
Run declare_rebase(CLI::App& app);
Run declare_quantize(CLI::App& app);
Run declare_prune(CLI::App& app);
Run declare_bench(CLI::App& app);
Run declare_store_init(CLI::App& app);
Run declare_store_save(CLI::App& app);
Run declare_store_list(CLI::App& app);
Run declare_store_watch(CLI::App& app);
Run declare_store_follow(CLI::App& app);
Run declare_store_publish(CLI::App& app);
Run declare_store_latest(CLI::App& app);
Run declare_store_restore(CLI::App& app);
Run declare_store_verify(CLI::App& app);
Run declare_store_repair(CLI::App& app);
Run declare_store_prune(CLI::App& app);
Run declare_store_rebase(CLI::App& app);
Run declare_store_promote(CLI::App& app);
Run declare_store_pool(CLI::App& app);
Run declare_store_transition(CLI::App& app);
Run declare_version(CLI::App& app);
Run declare_help(CLI::App& app);
/// For a command that is the name of a group: lists the commands of the group.
Run declare_group(CLI::App& app);

}  // namespace thalia::cli
