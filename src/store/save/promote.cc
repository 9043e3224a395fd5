// Copies that leave the phase's folder: gates, and checkpoints that are restored. What is copied is
// held against its digest while it is copied.
#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "io/file/posix_file.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "state/delta/save_state.h"
#include "store/load/checked_file.h"
#include "store/run/gate_meta.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"
#include "store/save/impl.h"
#include "store/save/payload.h"
#include "store/save/repair_gates.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia {
namespace {

using store::WrittenPayload;

// The best, or where no metric has told one the latest.
CheckpointEntry chosen_entry(const Run& run, std::string_view phase,
                             std::optional<std::uint64_t> step) {
  if (step) return store::entry_of_step(store::RunFolder::of(run), phase, *step);
  if (auto best = run.best(phase)) return *best;
  if (auto latest = run.latest(phase)) return *latest;
  throw UsageError(ErrorCode::not_found, "the phase has no checkpoint",
                   {.path = run.phase_folder(phase).string()});
}

// Copies the state of a delta, else the file as it is. A file without a digest has to pass its own
// checks.
WrittenPayload copy_checkpoint(const store::SaveSession& session, const RunConfig& config,
                               const std::filesystem::path& from, const std::filesystem::path& to,
                               const LoadOptions& load, const OutputOptions& output,
                               const std::function<void(const WrittenPayload&)>& announce = {}) {
  const store::RunFiles& files = session.files();
  const std::optional<std::string> digest = store::read_sidecar(files, from);
  const std::shared_ptr<const io::FileBytes> source = files.open(from);
  if (config.is_thalia()) {
    LoadOptions look = load;
    if (digest) look.check = LoadCheck::on_touch;
    if (store::open_chain_checked(files, from, look, store::MissingDigest::warn).depth() != 0) {
      const ChainReader checked =
          store::open_chain_checked(files, from, load, store::MissingDigest::warn);
      // If it is announced, its digest has to be known before it gets its name.
      std::optional<io::TemporaryFile> first;
      if (announce) first.emplace(to, output.within);
      const SaveResult saved = state::save_state(
          state_source(checked), first ? first->path() : to,
          SaveOptions{
              .sha256 = !first,
              .output = first ? first->output() : output,
              .work = {.threads = load.read.work.threads, .cancel = session.options.cancel}});
      if (first) {
        const io::UniqueFd state = io::open_for_reading(first->path());
        return store::copy_payload(session, to, {state.get(), to}, output, {}, announce);
      }
      return {
          .bytes = saved.file_bytes, .sha256 = *saved.sha256, .sync_seconds = saved.sync_seconds};
    }
  }
  return store::copy_payload(session, to, {source->fd(), from}, output, digest.value_or(""),
                             announce);
}

}  // namespace

PromoteResult RunWriter::promote(std::string_view phase, const PromoteOptions& options) {
  const store::SaveSession session = impl_->session();
  const std::string name = options.gate.value_or(run().config().phase(phase).gate_name());
  const std::filesystem::path path = run().gate_path(name);
  const OutputOptions output = session.output(options.force);
  io::check_output_name(path, output);
  // Held, so that retention does not take away what is copied.
  const std::unique_lock held = impl_->lock();
  const CheckpointEntry entry = chosen_entry(run(), phase, options.step);
  session.files().make_folders(path.parent_path(), session.options.durability);
  LoadOptions load;
  load.on_warning = session.options.on_warning;
  load.read = session.files().reading(session.options.cancel);
  GateEntry gate{{.phase = entry.phase, .step = entry.step}, name, path.filename().string()};
  gate.source_file = entry.file;
  gate.metric = entry.metric;
  gate.promoted_at = store::now_seconds();
  GateEntry before;
  for (const GateEntry& there : run().gates())
    if (there.name == name) before = there;
  const auto write_meta = [&](const store::GateMeta& meta) {
    session.files().write_text(path.parent_path() / (name + std::string(store::kMetaEnding)),
                               store::gate_text(meta), session.options.durability);
  };
  try {
    const WrittenPayload written =
        copy_checkpoint(session, run().config(), run().path_of(entry), path, load, output,
                        [&](const WrittenPayload& made) {
                          gate.bytes = made.bytes;
                          gate.sha256 = hex(made.sha256.bytes);
                          write_meta({.gate = gate, .before = before});
                        });
    // After the file and its digest: which of the two is there has not to be told any more.
    write_meta({.gate = gate});
    return {.gate = std::move(gate), .is_cloned = written.is_cloned};
  } catch (...) {
    try {
      store::repair_gate(session, name);
    } catch (const Error&) {
      // The next writer does it.
    }
    throw;
  }
}

RestoreResult restore(const Run& run, std::string_view phase, const std::filesystem::path& target,
                      const RestoreOptions& options) {
  io::check_output_name(target, options.output);
  const RunConfig& config = run.config();
  const auto take = [&](auto loaded) {
    return RestoreResult{.entry = std::move(loaded.entry),
                         .source = std::move(loaded.path),
                         .attempts = std::move(loaded.attempts)};
  };
  // Loaded, it has passed every check; then it is copied.
  RestoreResult result = [&] {
    if (options.gate) {
      return config.is_thalia() ? take(run.load_gate(*options.gate, options.load))
                                : take(run.load_gate_bytes(*options.gate, options.load));
    }
    return config.is_thalia() ? take(run.load(phase, options.load))
                              : take(run.load_bytes(phase, options.load));
  }();
  const RunWriterOptions writing{.cancel = options.load.read.work.cancel,
                                 .durability = options.output.durability};
  const store::SaveSession session{store::RunFolder::of(run), writing};
  const WrittenPayload written =
      copy_checkpoint(session, config, result.source, target, options.load, options.output);
  result.bytes = written.bytes;
  result.is_cloned = written.is_cloned;
  return result;
}

}  // namespace thalia
