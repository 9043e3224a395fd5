// The list of all commands: the program, help, the manual page and the completions are made of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggestion.h"
#include "cli/command/command.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

constexpr std::array kCommands{
    Command{"info", "FILE", "what it is: parameters, dtypes, steps, sizes, metadata",
            kChains | kAnyFormat | kJson | kPages, declare_info},
    Command{"ls", "FILE [PATTERN...]", "regions, all tensors, or those that patterns fit",
            kChains | kAnyFormat | kJson | kPages, declare_ls},
    Command{"cat", "FILE TENSOR", "tensors or slices of them, as text, json, npy or raw",
            kChains | kAnyFormat | kOutput | kPages, declare_cat},
    Command{"stats", "FILE [PATTERN...]", "range, moments, zeros and NaN of each tensor",
            kChains | kAnyFormat | kThreads | kJson | kPages, declare_stats},
    Command{"verify", "FILE...", "everything that can be wrong, every finding named",
            kChains | kAnyFormat | kThreads | kJson, declare_verify},
    Command{"convert", "IN OUT", "from one format to another",
            kChains | kAnyFormat | kThreads | kJson | kOutput | kStamp, declare_convert},
    Command{"migrate", "IN OUT --to VERSION", "to another version of the format, 0.1 or 1.0",
            kFiles | kJson | kOutput | kStamp, declare_migrate},
    Command{"extract", "FILE --regions A,B OUT",
            "some regions, or one brain, into a file of their own",
            kChains | kThreads | kJson | kOutput | kStamp, declare_extract},
    Command{"merge", "A B... -o OUT", "several checkpoints in one, conflicts named",
            kFiles | kThreads | kJson | kOutput | kStamp, declare_merge},
    Command{"diff", "A B [PATTERN...]", "what changed; with --values by how much",
            kChains | kAnyFormat | kThreads | kJson | kPages, declare_diff},
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
            kChains | kAnyFormat | kThreads | kJson | kOutput | kStamp, declare_delta},
    Command{"resolve", "DELTA OUT", "the full file of a delta and its bases",
            kChains | kThreads | kJson | kOutput | kStamp, declare_resolve},
    Command{"rebase", "FILE...", "a chain turned: the newest full, the older ones deltas of it",
            kChains | kThreads | kJson, declare_rebase},
    Command{"quantize", "IN OUT", "weights as codes of a few bits, with the error that it makes",
            kFiles | kThreads | kJson | kOutput | kStamp, declare_quantize},
    Command{"prune", "IN OUT", "without dead synapses, or silent neurons",
            kChains | kThreads | kJson | kOutput | kStamp, declare_prune},
    Command{"plot", "KIND FILE... -o OUT", "pictures: growth, weights, diff, chain; SVG or PNG",
            kChains | kAnyFormat | kThreads | kOutput, declare_plot},
    Command{"report", "FILE [BASE] -o OUT.html", "all about a checkpoint as one web page",
            kChains | kAnyFormat | kThreads | kOutput, declare_report},
    Command{"store", "COMMAND", "directories of training runs: what is saved, what stays",
            kJson | kPages, declare_group},
    Command{"store init", "RUN", "a new run", kJson, declare_store_init},
    Command{"store save", "RUN FILE --step S", "a file as a checkpoint, full or a delta",
            kFiles | kWait | kJson | kOutput, declare_store_save},
    Command{"store list", "RUN", "checkpoints, gates and pool; or several runs", kJson | kPages,
            declare_store_list},
    Command{"store watch", "RUN", "the same again whenever it changes", kJson, declare_store_watch},
    Command{"store follow", "RUN", "each new state as it comes, in a file",
            kChains | kThreads | kJson, declare_store_follow},
    Command{"store publish", "RUN FILE", "a state, for who follows the run",
            kChains | kWait | kThreads | kJson, declare_store_publish},
    Command{"store latest", "RUN", "path of the newest checkpoint that loads", kFiles | kJson,
            declare_store_latest},
    Command{"store restore", "RUN OUT", "a checkpoint or a gate as a full file",
            kFiles | kJson | kOutput, declare_store_restore},
    Command{"store verify", "RUN", "everything that is damaged or missing",
            kFiles | kThreads | kJson, declare_store_verify},
    Command{"store repair", "RUN", "the same, and repairs what it can",
            kFiles | kWait | kThreads | kJson, declare_store_repair},
    Command{"store prune", "RUN", "what retention does not keep goes; why", kFiles | kWait | kJson,
            declare_store_prune},
    Command{"store rebase", "RUN", "the newest full, the older ones deltas of it",
            kFiles | kWait | kJson, declare_store_rebase},
    Command{"store promote", "RUN", "the best checkpoint as a gate, for good",
            kFiles | kWait | kJson | kOutput, declare_store_promote},
    Command{"store pool", "RUN [ACTION]", "earlier versions: list, add, rate, draw",
            kFiles | kWait | kJson, declare_store_pool},
    Command{"store transition", "RUN FROM TO", "from a phase to the next, by a plan",
            kFiles | kWait | kJson | kOutput, declare_store_transition},
    Command{"bench", "[--dir D]", "speed of saving and loading beside disk and memory",
            kThreads | kJson, declare_bench},
    Command{"version", "", "versions of library and format, codecs", kJson, declare_version},
    Command{"help", "[COMMAND]", "this list, or one command at length", kJson | kPages,
            declare_help},
};

// The group that a name of two words is of; empty of any other.
std::string_view group_of(std::string_view name) {
  const std::size_t space = name.find(' ');
  return space == std::string_view::npos ? std::string_view() : name.substr(0, space);
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

std::vector<Command> commands_of(std::string_view group) {
  std::vector<Command> found;
  for (const Command& command : kCommands)
    if (group_of(command.name) == group) found.push_back(command);
  return found;
}

std::string take_command_name(std::vector<std::string>& words) {
  std::string name = words.front();
  words.erase(words.begin());
  if (commands_of(name).empty() || words.empty() || words.front().starts_with('-')) return name;
  name += " " + words.front();
  words.erase(words.begin());
  return name;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  return found == kCommands.end() ? nullptr : &*found;
}

const Command& require_command(std::string_view name) {
  if (const Command* command = find_command(name)) return *command;
  std::string hint = suggestion_among(name, kCommands, &Command::name);
  const std::string_view group = group_of(name);
  if (hint.empty()) {
    hint = group.empty() ? ", 'thalia help' lists the commands"
                         : fmt::format(", 'thalia help {}' lists the commands", group);
  }
  throw UsageError(ErrorCode::not_found, fmt::format("no command '{}'{}", name, hint));
}

}  // namespace thalia::cli
