// From the latest to the oldest: what cannot be loaded is passed over, and reported at the end if
// nothing can. docs/format/store.md, "Loading".
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fail.h"
#include "io/system/posix_error.h"
#include "store/load/checked_file.h"
#include "store/run/gate_meta.h"
#include "store/run/names.h"
#include "store/run/run_folder.h"
#include "thalia/store/run.h"
#include "thalia/text.h"

namespace thalia {
namespace {

// Each time around, all that was listed had gone before it was opened.
constexpr int kMostListings = 4;

std::string list_attempts(const std::vector<LoadAttempt>& attempts) {
  std::string text = "no checkpoint of the phase can be loaded";
  const char* before = ": ";
  for (const LoadAttempt& attempt : attempts) {
    text += before + attempt.failure;
    before = "; ";
  }
  return text;
}

// What `open` makes of the first entry that it can open.
template <typename Open>
auto load_first(const store::RunFolder& run, std::string_view phase, const LoadOptions& options,
                const Open& open) {
  const std::filesystem::path folder = run.phase(phase);
  if (options.step) {
    CheckpointEntry entry = store::entry_of_step(run, phase, *options.step);
    const std::filesystem::path path = folder / entry.file;
    return open(std::move(entry), path, std::vector<LoadAttempt>{{path, "", false}});
  }
  for (int listings = 1;; ++listings) {
    const std::vector<CheckpointEntry> entries = store::loading_order(run.list(phase));
    if (entries.empty())
      throw UsageError(ErrorCode::not_found, "the phase has no checkpoint",
                       {.path = folder.string()});
    std::vector<LoadAttempt> attempts;
    bool all_gone = true;
    for (const CheckpointEntry& entry : entries) {
      attempts.push_back({folder / entry.file, "", false});
      try {
        return open(entry, folder / entry.file, attempts);
      } catch (const CancelledError&) {
        throw;
      } catch (const Error& error) {
        const auto* const io = dynamic_cast<const IoError*>(&error);
        if (io::is_out_of_resources(error)) throw;
        attempts.back().failure = error.what();
        attempts.back().is_damaged = dynamic_cast<const IntegrityError*>(&error) != nullptr ||
                                     dynamic_cast<const FormatError*>(&error) != nullptr;
        const bool is_gone = io != nullptr && io->errno_value() == ENOENT &&
                             error.context().path == attempts.back().path.string();
        all_gone = all_gone && is_gone;
        if (!is_gone && options.on_warning)
          options.on_warning("passed over: " + attempts.back().failure);
      }
    }
    if (!all_gone || listings == kMostListings)
      throw NoValidCheckpointError(std::move(attempts), {.path = folder.string()});
  }
}

// What goes wrong with a gate says that it is one: nothing takes its place.
template <typename Open>
auto load_gate_with(const Run& run, std::string_view name, const Open& open) {
  const std::filesystem::path path = run.gate_path(name);
  CheckpointEntry entry;
  for (const GateEntry& gate : run.gates()) {
    if (gate.name != name) continue;
    entry.phase = gate.phase;
    entry.step = gate.step;
    entry.file = gate.file;
    entry.bytes = gate.bytes;
    entry.metric = gate.metric;
    entry.saved_at = gate.promoted_at;
    entry.has_digest = !gate.sha256.empty();
  }
  if (entry.file.empty())
    throw UsageError(ErrorCode::not_found,
                     fmt::format("the run has no gate '{}'", printable(name, 60)),
                     {.path = path.parent_path().string()});
  return open(std::move(entry), path, std::vector<LoadAttempt>{{path, "", false}});
}

// The digests that NAME.meta.json has of a gate. They count if a crash, or a process at work, left
// the gate with its name and without its digest.
store::OtherDigests digests_of_gate(const store::RunFolder& run, std::string name) {
  return [&run, name = std::move(name)] {
    const std::optional<store::GateMeta> meta = store::read_gate_meta(run, name);
    return meta ? meta->digests() : std::vector<std::string>();
  };
}

auto thalia_opener(const store::RunFiles& files, const LoadOptions& options,
                   store::MissingDigest missing, const store::OtherDigests& others = {}) {
  return
      [&files, &options, missing, others](CheckpointEntry entry, const std::filesystem::path& path,
                                          std::vector<LoadAttempt> attempts) {
        ChainReader chain = store::open_chain_checked(files, path, options, missing, others);
        return LoadedCheckpoint{std::move(entry), path, std::move(chain), std::move(attempts)};
      };
}

auto bytes_opener(const store::RunFiles& files, const LoadOptions& options,
                  store::MissingDigest missing, const store::OtherDigests& others = {}) {
  return
      [&files, &options, missing, others](CheckpointEntry entry, const std::filesystem::path& path,
                                          std::vector<LoadAttempt> attempts) {
        auto file = store::open_checked(files, path, options, missing, others).bytes;
        file->touch_whole(options.read.work.cancel);
        const ByteSpan bytes = file->bytes();
        return LoadedBytes{std::move(entry), path, {bytes, std::move(file)}, std::move(attempts)};
      };
}

}  // namespace

std::vector<CheckpointEntry> store::loading_order(const RunListing& listing) {
  std::vector<CheckpointEntry> found = listing.entries;
  std::ranges::sort(found, {}, [](const CheckpointEntry& entry) {
    return std::pair(entry.left_behind, kMaxStep - entry.step);
  });
  return found;
}

void store::require_thalia(const RunConfig& config) {
  if (config.is_thalia()) return;
  throw UsageError(ErrorCode::wrong_state,
                   "the run's checkpoints are no .thalia files: they are loaded as bytes",
                   {.field = "extension", .value = fmt::format("'{}'", config.extension)});
}

NoValidCheckpointError::NoValidCheckpointError(std::vector<LoadAttempt> attempts,
                                               ErrorContext context)
    : IntegrityError(ErrorCode::checksum_mismatch, list_attempts(attempts), std::move(context)),
      attempts_(std::move(attempts)) {}

LoadedCheckpoint Run::load(std::string_view phase, const LoadOptions& options) const {
  store::require_thalia(config());
  return load_first(*folder_, phase, options,
                    thalia_opener(folder_->files(), options, store::MissingDigest::warn));
}

LoadedBytes Run::load_bytes(std::string_view phase, const LoadOptions& options) const {
  return load_first(*folder_, phase, options,
                    bytes_opener(folder_->files(), options, store::MissingDigest::warn));
}

LoadedCheckpoint Run::load_gate(std::string_view name, const LoadOptions& options) const {
  store::require_thalia(config());
  return load_gate_with(*this, name,
                        thalia_opener(folder_->files(), options, store::MissingDigest::refuse,
                                      digests_of_gate(*folder_, std::string(name))));
}

LoadedBytes Run::load_gate_bytes(std::string_view name, const LoadOptions& options) const {
  return load_gate_with(*this, name,
                        bytes_opener(folder_->files(), options, store::MissingDigest::refuse,
                                     digests_of_gate(*folder_, std::string(name))));
}

}  // namespace thalia
