#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "crash/store_run.h"
#include "support/files.h"
#include "thalia/files.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace going_on {
namespace {

constexpr std::uint64_t kNext = 9'000'000;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// The pool sweeps its folder itself, once it is opened.
void require_swept(const Run& run, bool pool_is_open) {
  const fs::path pool = run.config().pool
                            ? run.folder() / run.config().pool->phase / run.config().pool->folder
                            : fs::path();
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run.folder())) {
    const fs::path& path = entry.path();
    if (path.parent_path() == pool && !pool_is_open) continue;
    require(path.extension() != ".thalia-tmp", "a temporary file stays: " + path.string());
    for (const char* const ending : {".sha256", ".meta.json"}) {
      const std::string name = path.filename().string();
      if (!name.ends_with(ending)) continue;
      const std::string file = name.substr(0, name.size() - std::string(ending).size());
      // For the best and for gates, the name is without the extension.
      const bool is_beside = is_file(path.parent_path() / file) ||
                             is_file(path.parent_path() / (file + "." + run.config().extension));
      require(is_beside || file == "best", "stays beside no file: " + path.string());
    }
  }
}

// Where the link can be followed by anybody.
void require_latest(const Run& run, const std::string& phase) {
  const auto latest = run.latest(phase);
  if (!latest) return;
  const fs::path link = run.phase_folder(phase) / ("latest." + run.config().extension);
  require(fs::is_symlink(link) && fs::read_symlink(link) == latest->file,
          "latest does not lead to " + latest->file);
}

// What repairing may change: lines of the journal, and what leads to checkpoints.
std::string unchanged_part(const std::string& description) {
  std::string text;
  for (std::size_t at = 0; at < description.size();) {
    const std::size_t end = description.find('\n', at);
    const std::string line = description.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("latest ") || line.starts_with("load ") || line.starts_with("best ") ||
        line.find(" protects\t") != line.npos || line.ends_with(" digest\tis there"))
      continue;
    text += line.substr(0, line.starts_with("checkpoint ") ? line.rfind(' ') : line.npos) + "\n";
  }
  return text;
}

void save_next(RunWriter& writer, const std::string& phase, std::uint64_t step) {
  const Run& run = writer.run();
  const StoredCheckpoint stored =
      run.config().is_thalia()
          ? writer.save(phase, step, crash_state(step), {.metric = 1.0})
          : writer.save_bytes(phase, step, test::bytes_of(crash_bytes(step)), {.metric = 1.0});
  const auto latest = run.latest(phase);
  require(latest && latest->step == step && latest->has_digest, "the next save is not the latest");
  require_latest(run, phase);
  const auto loaded =
      run.config().is_thalia() ? run.load(phase).entry.step : run.load_bytes(phase).entry.step;
  require(loaded == step, "the next save is not what is loaded");
}

void add_to_pool(RunWriter& writer) {
  Pool pool(writer);
  require_swept(writer.run(), true);
  const PoolView before = pool.view();
  const std::string& phase = before.config.phase;
  save_next(writer, phase, kNext + 1);
  const PoolMember added = pool.add(phase, kNext + 1, {.mu = 30, .sigma = 3}).member;
  require(added.version == before.next_version, "a version has another number than was told");
  for (const PoolMember& member : before.versions)
    require(member.version < added.version, "a version has a number that was given before");
  require(pool.view().versions.back() == added, "the next version is not the last");
  require(pool.view().versions.size() <= before.config.keep, "the pool is too large");
}

}  // namespace
}  // namespace going_on

void go_on_with_run(const fs::path& folder) {
  using namespace going_on;
  const std::string before = description_of_run(folder);
  if (before.empty()) create_run(folder, crash_config());
  { const RunWriter first(folder); }
  const std::string repaired = description_of_run(folder);
  {
    RunWriter writer(folder);
    const std::string again = description_of_run(folder);
    require(again == repaired,
            "repairing twice changes what is there: " + repaired + "to " + again);
    const Run& run = writer.run();
    require_swept(run, false);
    if (!before.empty())
      require(unchanged_part(repaired) == unchanged_part(before),
              "repairing changes what is there");
    for (const PhaseConfig& phase : run.config().phases) require_latest(run, phase.name);
    const std::string& phase = run.config().phases[0].name;
    save_next(writer, phase, kNext);
    if (run.config().pool) add_to_pool(writer);
    const PromoteResult gate = writer.promote(phase, {.step = kNext, .force = true});
    require(run.config().is_thalia() ? run.load_gate(gate.gate.name).entry.step == kNext
                                     : run.load_gate_bytes(gate.gate.name).entry.step == kNext,
            "the next gate is not what is loaded");
  }
  const RunWriter again(folder);
  require_swept(again.run(), true);
  description_of_run(folder);
}

}  // namespace thalia::crash
