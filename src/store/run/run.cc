// All but the configuration is read from the folder at each call, since other processes save and
// prune meanwhile. create_run() writes the configuration last: a folder that has one is a whole
// run.
#include "thalia/store/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/fail.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "store/run/names.h"
#include "store/run/run_folder.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia {
namespace {

constexpr const char* kTomlName = "run.toml";
constexpr const char* kJsonName = "run.json";
constexpr std::uint64_t kLowWord = 0xffffffff;

}  // namespace

Run Run::open(const std::filesystem::path& folder, Access access) {
  const store::RunFiles files(folder);
  const std::optional<std::string> toml = files.read_text(folder / kTomlName);
  const std::optional<std::string> json = files.read_text(folder / kJsonName);
  if (toml && json)
    throw UsageError(ErrorCode::bad_argument, "the run has run.toml and run.json: remove one",
                     {.path = folder.string()});
  if (!toml && !json)
    throw UsageError(ErrorCode::not_found,
                     "no run: the folder has neither run.toml nor run.json ('thalia store init' "
                     "makes one)",
                     {.path = folder.string()});
  const std::filesystem::path file = folder / (toml ? kTomlName : kJsonName);
  RunConfig config = parse_run_config(
      toml ? *toml : *json, toml ? ConfigFormat::toml : ConfigFormat::json, file.string());
  return store::RunFolder(folder, std::move(config), access).as_run();
}

const std::filesystem::path& Run::folder() const noexcept {
  return folder_->path();
}

const RunConfig& Run::config() const noexcept {
  return folder_->config();
}

std::filesystem::path Run::phase_folder(std::string_view phase) const {
  return folder_->phase(phase);
}

std::filesystem::path Run::path_of(const CheckpointEntry& entry) const {
  return folder_->phase(entry.phase) / entry.file;
}

std::string Run::file_name(std::string_view phase, std::uint64_t step) const {
  return folder_->checkpoint(phase, step);
}

std::vector<CheckpointEntry> Run::list(std::string_view phase) const {
  return folder_->list(phase).entries;
}

std::optional<CheckpointEntry> Run::latest(std::string_view phase) const {
  const store::RunListing listing = folder_->list(phase);
  if (listing.entries.empty()) return std::nullopt;
  if (!listing.latest) return listing.entries.back();
  return *std::ranges::find(listing.entries, *listing.latest, &CheckpointEntry::file);
}

std::optional<CheckpointEntry> Run::best(std::string_view phase) const {
  for (CheckpointEntry& entry : list(phase))
    if (std::ranges::find(entry.protected_by, "best") != entry.protected_by.end()) return entry;
  return std::nullopt;
}

std::optional<std::string> Run::current_phase() const {
  const std::vector<PhaseConfig>& phases = config().phases;
  for (auto phase = phases.rbegin(); phase != phases.rend(); ++phase)
    if (!list(phase->name).empty()) return phase->name;
  return std::nullopt;
}

std::vector<GateEntry> Run::gates() const {
  return folder_->list_gates();
}

std::filesystem::path Run::gate_path(std::string_view name) const {
  if (!store::is_name(name))
    fail_argument(ErrorCode::bad_argument, "gate", fmt::format("'{}'", printable(name, 60)),
                  "letters, digits, '.', '-' and '_'");
  return folder_->gates() / fmt::format("{}.{}", name, config().extension);
}

std::vector<RunSummary> find_runs(const std::filesystem::path& runs) {
  std::vector<RunSummary> found;
  const std::optional<io::Folder> folder = io::Folder::find(runs);
  if (!folder) return found;
  for (const io::FolderEntry& entry : folder->entries()) {
    const std::filesystem::path path = runs / entry.name;
    const std::optional<io::Folder> run = io::Folder::find(path);
    if (run && (run->facts(kTomlName) || run->facts(kJsonName)))
      found.push_back({path, entry.name});
  }
  std::ranges::sort(found, {}, &RunSummary::id);
  return found;
}

std::string run_id(std::uint64_t started_at, std::uint64_t master_seed) {
  const auto seconds = static_cast<std::time_t>(started_at);
  std::tm utc{};
  if (started_at > 253402300799 || ::gmtime_r(&seconds, &utc) == nullptr)
    fail_argument(ErrorCode::bad_argument, "started_at", std::to_string(started_at),
                  "seconds since 1970, before the year 10000");
  return fmt::format("{:04}{:02}{:02}_{:02}{:02}{:02}_{:08x}", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, master_seed & kLowWord);
}

bool is_run_id(std::string_view text) noexcept {
  constexpr std::string_view kShape = "dddddddd_dddddd_xxxxxxxx";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = c >= '0' && c <= '9';
    const bool fits = kShape[i] == 'd'   ? is_digit
                      : kShape[i] == 'x' ? is_digit || (c >= 'a' && c <= 'f')
                                         : c == kShape[i];
    if (!fits) return false;
  }
  return true;
}

Run create_run(const std::filesystem::path& folder, const RunConfig& config, ConfigFormat format) {
  // Before anything is made.
  const std::string text = run_config_text(config, format);
  constexpr Durability kFull = Durability::full;
  io::make_folders(folder, kFull);
  // It may have been there, with its name not yet on the disk.
  io::sync_name(folder);
  const store::RunFiles files(folder);
  const OutputOptions output = files.output(kFull, /*replace=*/false);
  for (const char* const name : {kTomlName, kJsonName})
    io::check_output_name(folder / name, output);
  const auto make = [&](const std::filesystem::path& name) {
    files.make_folders(folder / name, kFull);
  };
  for (const PhaseConfig& phase : config.phases)
    make(std::filesystem::path(phase.name) / store::kCheckpoints);
  make(store::kGates);
  make(store::kEvaluation);
  for (const std::string& name : config.fixed_networks) make(name);
  if (config.pool) make(std::filesystem::path(config.pool->phase) / config.pool->folder);
  OutputFile out(folder / (format == ConfigFormat::toml ? kTomlName : kJsonName), output);
  out.write(as_byte_span(text));
  out.commit();
  return Run::open(folder);
}

Run store::change_config(const std::filesystem::path& folder, const RunConfig& config,
                         Durability durability, Access access) {
  Run run = Run::open(folder, access);
  if (config.extension != run.config().extension)
    fail_argument(ErrorCode::bad_argument, "extension", fmt::format("'{}'", config.extension),
                  fmt::format("'{}', which the run's files have", run.config().extension));
  for (const PhaseConfig& phase : run.config().phases)
    if (std::ranges::find(config.phases, phase.name, &PhaseConfig::name) == config.phases.end())
      fail_argument(ErrorCode::bad_argument, "phases", fmt::format("no '{}'", phase.name),
                    "the phases that the run has, and perhaps more");
  const RunFiles files(folder);
  const std::optional<std::string> toml = files.read_text(folder / kTomlName);
  const ConfigFormat format = toml ? ConfigFormat::toml : ConfigFormat::json;
  // What says the same stays as it was written.
  if (run_config_text(config, format) == run_config_text(run.config(), format)) return run;
  files.write_text(folder / (toml ? kTomlName : kJsonName), run_config_text(config, format),
                   durability);
  return Run::open(folder, access);
}

}  // namespace thalia
