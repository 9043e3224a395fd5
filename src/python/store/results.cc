// What a run says of its checkpoints, and what was done to them.
#include <optional>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/store/store.h"
#include "thalia/store/repair.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// A full file has no base; nor has a gate without a digest one.
std::optional<std::string> unless_empty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

void bind_entries(nb::module_& module) {
  bind_result<CheckpointEntry>(
      module, "CheckpointEntry", "What a run knows of a checkpoint without opening it.",
      field("phase", &CheckpointEntry::phase), field("step", &CheckpointEntry::step),
      field("file", &CheckpointEntry::file, "Its name in the phase's folder of checkpoints."),
      field("file_bytes", &CheckpointEntry::bytes),
      field("saved_at", &CheckpointEntry::saved_at, "Seconds since 1970."),
      field("metric", &CheckpointEntry::metric, "What it was saved with."),
      field("has_digest", &CheckpointEntry::has_digest, "FILE.sha256 is there."),
      field("left_behind", &CheckpointEntry::left_behind,
            "The run went back to before it: something of a smaller step was saved, or resumed "
            "from, later."),
      field("condition", &CheckpointEntry::condition,
            "The condition of this file: \"whole\" if it is unchanged since it was saved or read, "
            "\"unknown\" if nobody has looked since it was changed."),
      field("base", &CheckpointEntry::base, "The file that a delta is based on.", unless_empty),
      field("depth", &CheckpointEntry::depth, "Deltas from here down to a full file; 0 of one."),
      field(
          "read_factor", &CheckpointEntry::read_factor,
          "The time of reading the whole chain of a delta by that of a full file, as measured when "
          "it was saved."),
      field("protected_by", &CheckpointEntry::protected_by,
            "Why retention leaves it alone: \"latest\", \"best\", \"gate NAME\"."));
  bind_result<GateEntry>(
      module, "GateEntry", "A copy of a phase's best checkpoint that nothing removes.",
      field("name", &GateEntry::name), field("phase", &GateEntry::phase),
      field("step", &GateEntry::step), field("file", &GateEntry::file, "Its name in gates/."),
      field("file_bytes", &GateEntry::bytes),
      field("source_file", &GateEntry::source_file, "The checkpoint that it was copied from."),
      field("sha256", &GateEntry::sha256, "None where its digest is missing.", unless_empty),
      field("metric", &GateEntry::metric),
      field("promoted_at", &GateEntry::promoted_at, "Seconds since 1970."));
  bind_result<RunSummary>(module, "RunSummary", "A run that find_runs() found.",
                          field("folder", &RunSummary::folder),
                          field("id", &RunSummary::id, "The folder's name."));
}

void bind_done(nb::module_& module) {
  bind_result<StoredCheckpoint>(
      module, "StoredCheckpoint", "What a save did.", field("entry", &StoredCheckpoint::entry),
      field("path", &StoredCheckpoint::path),
      field("is_best", &StoredCheckpoint::is_best, "It is the best of its phase now."),
      field("removed", &StoredCheckpoint::removed, "Files that retention did not keep."),
      field("seconds", &StoredCheckpoint::seconds),
      field("sync_seconds", &StoredCheckpoint::sync_seconds,
            "The part of `seconds` spent waiting for the disk."));
  bind_result<PromoteResult>(
      module, "PromoteResult", "What promote() did.", field("gate", &PromoteResult::gate),
      field("is_cloned", &PromoteResult::is_cloned,
            "It shares its blocks with the checkpoint until one of them is changed."));
  bind_result<LoadAttempt>(
      module, "LoadAttempt", "A checkpoint that a load tried.", field("path", &LoadAttempt::path),
      field("failure", &LoadAttempt::failure, "None of the one that was loaded.", unless_empty),
      field("is_damaged", &LoadAttempt::is_damaged, "Its bytes are not those that were saved."));
  bind_result<RestoreResult>(
      module, "RestoreResult", "What restore() did.", field("entry", &RestoreResult::entry),
      field("source", &RestoreResult::source, "The file in the run."),
      field("attempts", &RestoreResult::attempts, "What was tried; the last one was restored."),
      field("output_bytes", &RestoreResult::bytes),
      field("is_cloned", &RestoreResult::is_cloned,
            "The copy shares its blocks with the original until one of them is changed."));
}

void bind_checks(nb::module_& module) {
  bind_result<StoreFinding>(
      module, "StoreFinding", "One thing that is wrong with a run, or odd.",
      field("severity", &StoreFinding::severity, "\"error\" or \"warning\"."),
      field("kind", &StoreFinding::kind,
            "\"damaged\", \"missing_digest\", \"dangling_latest\", \"gate\", \"pool\", …"),
      field("path", &StoreFinding::path), field("message", &StoreFinding::message, "A sentence."),
      field("can_be_repaired", &StoreFinding::can_be_repaired),
      field("is_repaired", &StoreFinding::is_repaired));
  bind_result<StoreReport>(module, "StoreReport", "What verify() or repair() found of a run.",
                           computed("ok", &StoreReport::ok, "No error that was not repaired."),
                           field("findings", &StoreReport::findings),
                           field("checkpoints", &StoreReport::checkpoints),
                           field("bytes_checked", &StoreReport::bytes_checked));
  bind_result<ModelFit>(
      module, "ModelFit", "What of a checkpoint does not fit a model.",
      computed("ok", &ModelFit::ok, "All of it fits."),
      field("missing", &ModelFit::missing, "Tensors of the model that the checkpoint lacks."),
      field("unexpected", &ModelFit::unexpected,
            "Tensors of the checkpoint that the model lacks, as REGION/NAME."),
      field("different", &ModelFit::different,
            "Tensors of another shape or dtype: REGION/NAME, with both."));
}

}  // namespace

void bind_store_results(nb::module_& module) {
  bind_entries(module);
  bind_done(module);
  bind_checks(module);
}

}  // namespace thalia::python
