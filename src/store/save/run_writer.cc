// The public face: each way to save makes a file at the place of its step, and all of them end in
// Impl::publish().
#include <array>
#include <utility>

#include "base/fail.h"
#include "container/write/file_save.h"
#include "io/file/posix_file.h"
#include "io/folder/folder.h"
#include "state/delta/save_state.h"
#include "state/rebase/plan.h"
#include "store/retention/condition.h"
#include "store/run/record_keys.h"
#include "store/save/declared_state.h"
#include "store/save/impl.h"
#include "store/save/payload.h"
#include "store/save/required_keys.h"
#include "thalia/formats/any_file.h"
#include "thalia/text.h"

namespace thalia {
namespace {

using store::add_keys;
using store::keys_of;
using store::require_keys;
using store::require_thalia_run;
using store::saved_delta;
using store::saved_file;

// The keys of bytes, which are not looked into: what the caller says.
store::RecordKeys keys_of(const SaveInfo& info) {
  store::RecordKeys keys;
  for (const std::string& key : info.keys) keys.add_path(key);
  return keys;
}

// The same of a file, which may be of a format that can be looked into.
store::RecordKeys keys_of(const std::filesystem::path& path, const SaveInfo& info, Access access) {
  store::RecordKeys keys = keys_of(info);
  try {
    const ReadOptions read{.input = {.access = access}};
    // What torch saved has a tree where views are kept, with the keys of what is no tensor.
    const AnyFile file =
        open_any(path, {.chain = {.read = read}, .shared_memory = true, .as_stored = true});
    if (const auto state = file.state({.read = read})) {
      add_keys(keys, state_source(*state));
      return keys;
    }
    keys.add_metadata_text(file.metadata_json());
    for (const AnyTensor& tensor : file.tensors())
      keys.add_path(tensor.region.empty() ? tensor.name : tensor.region + "." + tensor.name);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return keys;
}

store::SavedFile saved_file(const store::WrittenPayload& written) {
  return {.bytes = written.bytes,
          .sha256 = hex(written.sha256.bytes),
          .sync_seconds = written.sync_seconds};
}

}  // namespace

std::string_view save_step_name(SaveStep step) noexcept {
  constexpr std::array<std::string_view, 11> kNames{
      "serialize",   "digest",  "write",  "sync", "rename", "sidecar",
      "sync_folder", "journal", "latest", "best", "retain"};
  return kNames[static_cast<std::size_t>(step)];
}

RunWriter::RunWriter(const std::filesystem::path& folder, RunWriterOptions options) {
  impl_ = std::make_unique<Impl>(folder, std::move(options));
}
// In a forked child its threads are not there. A callback of its own thread ends that, and what is
// left, once it is back.
RunWriter::~RunWriter() {
  if (impl_ && (impl_->is_foreign() || impl_->end_later())) impl_.leave();
}
RunWriter::RunWriter(RunWriter&&) noexcept = default;
RunWriter& RunWriter::operator=(RunWriter&& other) noexcept {
  const RunWriter last(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

const Run& RunWriter::run() const noexcept {
  return impl_->run();
}

Writer RunWriter::new_checkpoint(std::string_view phase, std::uint64_t step, SaveOptions options,
                                 bool replace) {
  require_thalia_run(run());
  const store::SavePlace place = impl_->place(phase, step, {.replace = replace});
  return Writer(place.path, impl_->save_options(std::move(options), replace));
}

StoredCheckpoint RunWriter::commit(Writer&& writer, const SaveInfo& info) {
  store::SavePlace place = impl_->place_of(writer, info);
  require_keys(run(), place.phase, [&] { return keys_of(container::file_save_of(writer).plan()); });
  return impl_->save(std::move(place), [&](const store::SavePlace&) {
    impl_->session().step(SaveStep::write);
    return saved_file(writer.commit());
  });
}

SaveHandle<StoredCheckpoint> RunWriter::commit_async(AsyncSaver& saver, Writer&& writer,
                                                     const SaveInfo& info, Snapshot snapshot,
                                                     std::function<void()> ready) {
  store::SavePlace place = impl_->place_of(writer, info);
  require_keys(run(), place.phase, [&] { return keys_of(container::file_save_of(writer).plan()); });
  impl_->session().step(SaveStep::write);
  impl_->begin_replacing(place);
  const SaveHandle<> save = saver.save_async(std::move(writer), snapshot, std::move(ready));
  return impl_->publish_later(store::control_of(save), std::move(place),
                              [save] { return saved_file(save.wait()); });
}

SaveHandle<StoredCheckpoint> RunWriter::save_async(AsyncSaver& saver, Writer&& writer,
                                                   const SaveInfo& info, Snapshot snapshot,
                                                   std::function<void()> ready) {
  store::SavePlace place = impl_->place_of(writer, info);
  const container::FilePlan& plan = container::file_save_of(writer).plan();
  require_keys(run(), place.phase, [&] { return keys_of(plan); });
  store::declared_state(plan);  // refuses what has no bytes yet
  place = impl_->place(place.phase, place.step, place.info, true);
  std::optional<ChainReader> base = impl_->base_of(place);
  if (!base) return commit_async(saver, std::move(writer), info, snapshot, std::move(ready));
  impl_->session().step(SaveStep::write);
  impl_->begin_replacing(place);
  return impl_->save_delta_later(saver, writer, std::move(place), *std::move(base), snapshot,
                                 std::move(ready));
}

StoredCheckpoint RunWriter::save(std::string_view phase, std::uint64_t step,
                                 const BrainState& brain, const SaveInfo& info,
                                 const BrainSaveOptions& options) {
  require_thalia_run(run());
  require_keys(run(), phase, [&] { return keys_of(brain); });
  // Codes of a few bits have no delta.
  store::SavePlace place = impl_->place(phase, step, info, !options.quantization);
  BrainSaveOptions own = options;
  return impl_->save(
      std::move(place),
      [&](const store::SavePlace& at) {
        impl_->session().step(SaveStep::write);
        own.save = impl_->save_options(options.save, at.info.replace);
        return saved_file(BrainCheckpoint::save(brain, at.path, own));
      },
      [&](const store::SavePlace& at, const ChainReader& base) {
        impl_->session().step(SaveStep::write);
        own.save = impl_->save_options(options.save, at.info.replace);
        own.save.sha256 = false;
        return saved_delta(BrainCheckpoint::save_delta(
            brain, at.path, base, {.brain = own, .pack = run().config().deltas.pack}));
      });
}

SaveHandle<StoredCheckpoint> RunWriter::save_async(AsyncSaver& saver, std::string_view phase,
                                                   std::uint64_t step, const BrainState& brain,
                                                   const SaveInfo& info,
                                                   const BrainSaveOptions& options,
                                                   Snapshot snapshot) {
  require_thalia_run(run());
  require_keys(run(), phase, [&] { return keys_of(brain); });
  store::SavePlace place = impl_->place(phase, step, info, !options.quantization);
  impl_->session().step(SaveStep::write);
  BrainSaveOptions own = options;
  own.save = impl_->save_options(options.save, info.replace);
  impl_->begin_replacing(place);
  if (const std::optional<ChainReader> base = impl_->base_of(place)) {
    store::SaveAt full = impl_->full_of_delta(impl_->save_options(options.save, true));
    own.save.sha256 = false;
    const SaveHandle<BrainDeltaResult> handle = BrainCheckpoint::save_delta_async(
        saver, brain, place.path, *base,
        {.brain = std::move(own), .pack = run().config().deltas.pack}, snapshot);
    return impl_->publish_later(
        store::control_of(handle), std::move(place),
        [handle] { return saved_delta(handle.wait()); }, std::move(full));
  }
  const SaveHandle<BrainSaveResult> handle =
      BrainCheckpoint::save_async(saver, brain, place.path, own, snapshot);
  return impl_->publish_later(store::control_of(handle), std::move(place),
                              [handle] { return saved_file(handle.wait()); });
}

StoredCheckpoint RunWriter::save(std::string_view phase, std::uint64_t step,
                                 const StateSource& state, const SaveInfo& info,
                                 const SaveOptions& options) {
  require_thalia_run(run());
  require_keys(run(), phase, [&] { return keys_of(state); });
  return impl_->save(
      impl_->place(phase, step, info, true),
      [&](const store::SavePlace& at) {
        impl_->session().step(SaveStep::write);
        return saved_file(
            state::save_state(state, at.path, impl_->save_options(options, at.info.replace)));
      },
      [&](const store::SavePlace& at, const ChainReader& base) {
        impl_->session().step(SaveStep::write);
        DeltaOptions delta{.save = impl_->save_options(options, at.info.replace),
                           .pack = run().config().deltas.pack};
        delta.save.sha256 = false;
        return saved_delta(write_delta(state, base, at.path, delta));
      });
}

StoredCheckpoint RunWriter::save(const Writer& writer, const SaveInfo& info) {
  const store::SavePlace place = impl_->place_of(writer, info);
  const container::FileSave& declared = container::file_save_of(writer);
  return save(place.phase, place.step, store::declared_state(declared.plan()), place.info,
              declared.options());
}

StoredCheckpoint RunWriter::save_bytes(std::string_view phase, std::uint64_t step, ByteSpan bytes,
                                       const SaveInfo& info) {
  require_keys(run(), phase, [&] { return keys_of(info); });
  return impl_->save(impl_->place(phase, step, info), [&](const store::SavePlace& at) {
    return saved_file(store::write_payload(impl_->session(), at.path, bytes,
                                           impl_->session().output(at.info.replace)));
  });
}

StoredCheckpoint RunWriter::save_stream(std::string_view phase, std::uint64_t step,
                                        const ByteProducer& produce, const SaveInfo& info) {
  require_keys(run(), phase, [&] { return keys_of(info); });
  return impl_->save(impl_->place(phase, step, info), [&](const store::SavePlace& at) {
    return saved_file(store::write_payload(impl_->session(), at.path, produce,
                                           impl_->session().output(at.info.replace)));
  });
}

StoredCheckpoint RunWriter::save_file(std::string_view phase, std::uint64_t step,
                                      const std::filesystem::path& file, const SaveInfo& info) {
  const ChainOptions options{.read = {.input = {.access = impl_->options().access}}};
  if (run().config().is_thalia() && is_in_parts(file, impl_->options().access))
    return save(phase, step, state_source(file, options), info);
  const io::UniqueFd source = io::open_for_reading(file);
  const auto copy = [&](const store::SavePlace& at) {
    return saved_file(store::copy_payload(impl_->session(), at.path, {source.get(), file},
                                          impl_->session().output(at.info.replace)));
  };
  if (!run().config().is_thalia()) {
    require_keys(run(), phase, [&] { return keys_of(file, info, impl_->options().access); });
    return impl_->save(impl_->place(phase, step, info), copy);
  }
  // What is damaged is not kept as if it were whole.
  const ChainReader chain = ChainReader::open(file, options);
  chain.reader().verify_all(impl_->options().cancel);
  const StateSource state = state_source(chain);
  if (chain.depth() != 0) return save(phase, step, state, info);
  require_keys(run(), phase, [&] { return keys_of(state); });
  return impl_->save(
      impl_->place(phase, step, info, true), copy,
      [&](const store::SavePlace& at, const ChainReader& base) {
        impl_->session().step(SaveStep::write);
        const OutputOptions output = impl_->session().output(at.info.replace);
        return saved_delta(write_delta(state, base, at.path, {.save = {.output = output}}));
      });
}

StorePruneResult RunWriter::prune(std::string_view phase, const StorePruneOptions& options) {
  std::unique_lock held = impl_->lock();
  const RetentionPolicy& own = run().config().phase(phase).retention;
  return impl_->retain(phase, options.policy ? *options.policy : own, options.dry_run, held);
}

RebaseResult RunWriter::rebase(std::string_view phase, const StoreRebaseOptions& options) {
  require_thalia_run(run());
  state::check_rebase_depth(options.max_depth);
  const std::unique_lock held = impl_->lock();
  return impl_->rebase(phase, options.max_depth);
}

// What was passed over is written down first: a run that goes on without that would count it.
LoadedCheckpoint RunWriter::resume(std::string_view phase, const LoadOptions& options) {
  const store::SaveSession session = impl_->session();
  const auto note = [&](const std::vector<LoadAttempt>& attempts) {
    const io::Folder folder = session.run.files().folder(session.run.phase(phase));
    std::vector<store::GateFinding> findings;
    for (const LoadAttempt& attempt : attempts) {
      const std::string file = attempt.path.filename().string();
      const std::optional<io::EntryFacts> facts = folder.facts(file);
      if (facts && attempt.is_damaged)
        findings.push_back({file, {.bytes = facts->bytes, .modified_ns = facts->modified_ns}});
    }
    store::note_findings(session.run, phase, findings);
  };
  try {
    LoadedCheckpoint loaded = run().load(phase, options);
    const std::unique_lock held = impl_->lock();
    note(loaded.attempts);
    store::go_on_from(session, phase, loaded.entry.file);
    return loaded;
  } catch (const NoValidCheckpointError& error) {
    const std::unique_lock held = impl_->lock();
    note(error.attempts());
    throw;
  }
}

void RunWriter::reset_best(std::string_view phase) {
  const std::unique_lock held = impl_->lock();
  store::forget_best(impl_->session(), phase);
}

}  // namespace thalia
