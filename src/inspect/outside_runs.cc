#include "inspect/outside_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/store/run.h"

namespace thalia::inspect {
namespace {

namespace fs = std::filesystem;

// RUN/PHASE/checkpoints/NAME. Any folder may have such a parent.
std::optional<Run> run_around(const fs::path& folder) {
  try {
    return Run::open(folder.parent_path().parent_path());
  } catch (const UsageError&) {
  } catch (const FormatError&) {
  }
  return std::nullopt;
}

bool is_checkpoint(const Run& run, const fs::path& file) {
  return std::ranges::any_of(run.config().phases, [&](const PhaseConfig& phase) {
    if (resolved_path(run.phase_folder(phase.name)) != file.parent_path()) return false;
    const std::vector<CheckpointEntry> entries = run.list(phase.name);
    return std::ranges::find(entries, file.filename().string(), &CheckpointEntry::file) !=
           entries.end();
  });
}

}  // namespace

void require_outside_runs(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    const fs::path path = resolved_path(file);
    const std::optional<Run> run = run_around(path.parent_path());
    if (!run || !is_checkpoint(*run, path)) continue;
    throw UsageError(ErrorCode::wrong_state,
                     "a checkpoint of a run, which keeps digests and a journal: 'thalia store "
                     "rebase' and RunWriter change it",
                     {.path = file.string()});
  }
}

}  // namespace thalia::inspect
