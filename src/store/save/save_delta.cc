// A delta needs its base whole, and the base may be damaged by the time that it is read. A state
// that is at hand becomes a full file then; one that is not fails, and the next save is a full
// file.
#include <fmt/format.h>

#include <utility>

#include "container/background/writer_save.h"
#include "container/write/file_digest.h"
#include "container/write/file_save.h"
#include "state/delta/save_state.h"
#include "store/save/declared_state.h"
#include "store/save/impl.h"
#include "thalia/error.h"

namespace thalia {

std::optional<ChainReader> RunWriter::Impl::base_of(store::SavePlace& place) const {
  if (!place.delta) return std::nullopt;
  try {
    return folder().files().open_chain(place.path.parent_path() / place.delta->base);
  } catch (const Error& failure) {
    warn_of_base(place, failure);
  }
  place.delta.reset();
  return std::nullopt;
}

void RunWriter::Impl::warn_of_base(const store::SavePlace& place,
                                   const std::exception& failure) const {
  session().warn(fmt::format("step {} of {} is a full file, as a delta has no base: {}", place.step,
                             place.phase, failure.what()));
}

StoredCheckpoint RunWriter::Impl::save(store::SavePlace place, const store::SaveAt& full,
                                       const store::SaveDeltaAt& delta) {
  return save_at(place, full, [&](store::SavePlace& at) -> std::optional<store::SavedFile> {
    const std::optional<ChainReader> base = base_of(at);
    if (!base) return std::nullopt;
    return delta(at, *base);
  });
}

// The training has gone on: the state is that of the delta.
store::SaveAt RunWriter::Impl::full_of_delta(SaveOptions options) const {
  return [options = std::move(options), this](const store::SavePlace& at) {
    session().step(SaveStep::write);
    const ChainReader chain = folder().files().open_chain(at.path);
    return store::saved_file(state::save_state(state_source(chain), at.path, options));
  };
}

SaveHandle<StoredCheckpoint> RunWriter::Impl::save_delta_later(AsyncSaver& saver, Writer& writer,
                                                               store::SavePlace place,
                                                               ChainReader base, Snapshot snapshot,
                                                               std::function<void()> ready) {
  const SaveOptions& options = container::file_save_of(writer).options();
  store::SaveAt full = full_of_delta(save_options(options, true));
  auto made = std::make_shared<store::SavedFile>();
  // What the save itself knows of its place holds nothing.
  store::SavePlace at = place;
  at.hold.reset();
  at.replacement.reset();
  auto save = [this, made, at = std::move(at), base = std::move(base)](Writer& own) -> SaveResult {
    const container::FileSave& declared = container::file_save_of(own);
    DeltaOptions delta{.save = declared.options(), .pack = run().config().deltas.pack};
    delta.save.sha256 = false;
    // A digest of what was there is not the delta's.
    if (at.info.replace) container::remove_sha256_file(at.path, session().output());
    try {
      DeltaResult saved = write_delta(store::declared_state(declared.plan()), base, at.path, delta);
      *made = store::saved_delta(saved);
      return saved;
    } catch (const IntegrityError& failure) {
      warn_of_base(at, failure);
    }
    SaveResult saved = own.commit();
    *made = store::saved_file(saved);
    return saved;
  };
  const SaveHandle<> handle = container::save_async(
      saver,
      std::make_unique<container::WriterSave>(writer, snapshot, std::move(ready), std::move(save)));
  return publish_later(
      store::control_of(handle), std::move(place),
      [handle, made] {
        handle.wait();
        return *made;
      },
      std::move(full));
}

}  // namespace thalia
