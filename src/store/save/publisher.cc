// A state is compared with the one before it in memory, where that was published by this publisher
// and its file is still the one that was written; else with the file. What is written is removed
// again unless `latest` came to lead to it.
#include <fmt/format.h>

#include <exception>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/fail.h"
#include "base/inside.h"
#include "base/stopwatch.h"
#include "checkpoint/packing.h"
#include "container/write/file_digest.h"
#include "container/write/file_save.h"
#include "io/system/process.h"
#include "state/delta/save_state.h"
#include "store/save/declared_state.h"
#include "store/save/held_state.h"
#include "store/save/impl.h"
#include "store/save/publish_outcome.h"
#include "store/save/required_keys.h"
#include "thalia/store/publish.h"

namespace thalia {

void RunWriter::Impl::require_newest(const store::SavePlace& place,
                                     const store::RunListing& listing) const {
  for (const CheckpointEntry& entry : listing.entries)
    if (entry.file == listing.latest && place.step <= entry.step)
      fail_argument(
          ErrorCode::bad_argument, "step", std::to_string(place.step),
          fmt::format("more than {}, the step of the latest of {}", entry.step, place.phase));
}

store::SavePlace RunWriter::Impl::place_to_publish(std::string_view phase, std::uint64_t step,
                                                   const std::optional<double>& metric) const {
  SaveInfo info{.metric = metric};
  const store::RunListing listing = folder().list(phase);
  require_newest({.phase = std::string(phase), .step = step}, listing);
  for (const CheckpointEntry& entry : listing.entries)
    if (entry.step == step && entry.left_behind) info.replace = true;
  store::SavePlace made = place(phase, step, info, true);
  made.is_published = true;
  return made;
}

namespace {

using RunImpl = std::remove_reference_t<decltype(store::impl_of(std::declval<RunWriter&>()))>;

/// A state on its way to those who follow.
struct Publication {
  store::SavePlace place;
  StateSource state;
  PublishOptions options;
};

}  // namespace

class Publisher::Impl {
 public:
  Impl(RunWriter& writer, PublisherOptions options)
      : writer_(&writer), run_(store::impl_of(writer)), options_(std::move(options)) {
    store::require_thalia_run(run_.run());
    const RunConfig& config = run_.run().config();
    if (options_.phase.empty())
      options_.phase = run_.run().current_phase().value_or(config.phases.front().name);
    config.phase(options_.phase);
  }
  Impl(const std::filesystem::path& folder, PublisherOptions options, RunWriterOptions run_options)
      : Impl(std::make_unique<RunWriter>(folder, std::move(run_options)), std::move(options)) {}
  ~Impl() { wait(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  RunWriter& writer() noexcept { return *writer_; }
  const Run& run() const noexcept { return run_.run(); }
  const std::string& phase() const noexcept { return options_.phase; }
  bool is_foreign() const noexcept { return !process_.is_this(); }

  void wait() {
    process_.require("the publisher of the run");
    if (background_.joinable()) background_.join();
  }

  PublishedState publish(Publication publication) {
    if (!options_.hold) return write(publication);
    const std::vector<Tensor> tensors = store::load_tensors(publication.state);
    publication.state = store::over_tensors(publication.state, tensors);
    PublishedState published = write(publication);
    hold([&] {
      held_.copy(std::move(written_), publication.state, tensors,
                 publication.options.save.work.threads);
    });
    published.seconds = publication.place.watch.seconds();
    return published;
  }

  SaveHandle<PublishedState> publish_later(Publication publication) {
    store::copy_tensors(store::load_tensors(publication.state), spare_,
                        publication.options.save.work.threads);
    publication.state = store::over_tensors(publication.state, spare_);
    auto outcome = std::make_shared<store::PublishOutcome>(publication.options.save.work);
    publication.options.save.work = outcome->work();
    background_ = std::thread([this, outcome, publication = std::move(publication)]() mutable {
      outcome->run([&] {
        PublishedState published = write(publication);
        if (options_.hold)
          hold([&] { held_.take(std::move(written_), publication.state, spare_); });
        return published;
      });
    });
    return SaveHandle<PublishedState>(std::move(outcome));
  }

  store::SavePlace place(std::uint64_t step, const std::optional<double>& metric = {}) {
    wait();
    return run_.place_to_publish(phase(), step, metric);
  }
  /// Once what is under way has ended. @throws as publish() for the step.
  template <typename Keys>
  Publication begin(std::uint64_t step, const Keys& keys, const PublishOptions& options) {
    const Stopwatch watch;
    store::require_keys(run(), phase(), keys);
    Publication made{.place = place(step, options.metric), .state = {}, .options = options};
    made.place.watch = watch;
    return made;
  }
  Publication of_state(std::uint64_t step, const StateSource& state,
                       const PublishOptions& options) {
    Publication made = begin(
        step, [&] { return store::keys_of(state); }, options);
    made.state = state;
    return made;
  }
  Publication of_brain(std::uint64_t step, const BrainState& brain, const PublishOptions& options,
                       BrainSaveOptions brain_options) {
    // Codes of a few bits have no delta.
    if (brain_options.quantization)
      fail_argument(ErrorCode::bad_argument, "quantization", "options", "none to publish");
    Publication made = begin(
        step, [&] { return store::keys_of(brain); }, options);
    brain_options.save = options.save;
    made.state = checkpoint::state_of(checkpoint::stored_brain(brain, brain_options));
    return made;
  }
  Publication of_writer(const Writer& writer, PublishOptions options) {
    const store::SavePlace place = run_.place_of(writer, {});
    if (place.phase != phase())
      fail_argument(ErrorCode::bad_argument, "writer", fmt::format("of the phase {}", place.phase),
                    fmt::format("of {}, which is published", phase()));
    const container::FileSave& declared = container::file_save_of(writer);
    options.save = declared.options();
    Publication made = begin(
        place.step, [&] { return store::keys_of(declared.plan()); }, options);
    made.state = store::declared_state(declared.plan());
    return made;
  }

 private:
  Impl(std::unique_ptr<RunWriter> own, PublisherOptions options) : Impl(*own, std::move(options)) {
    own_ = std::move(own);
  }

  /// What comes after it has no part in whether the state is published.
  template <typename Hold>
  void hold(const Hold& work) {
    try {
      work();
    } catch (const std::exception& failure) {
      held_.forget();
      run_.session().warn(fmt::format(
          "what was published is not held, and the next delta reads its base: {}", failure.what()));
    }
  }

  void note_written(const store::SavePlace& place, const SaveResult& saved) {
    const auto facts = run_.folder().files().facts(place.path);
    written_ = {.file = place.file,
                .facts = facts.value_or(io::EntryFacts{}),
                .identity = saved.identity,
                .digests = saved.digests};
    is_written_ = true;
  }

  std::optional<store::SavedFile> write_delta_at(store::SavePlace& place, const StateSource& state,
                                                 const SaveOptions& save, PublishedState& result) {
    DeltaOptions options{.save = run_.save_options(save, place.info.replace),
                         .pack = run_.run().config().deltas.pack};
    options.save.sha256 = false;
    const std::filesystem::path base = place.path.parent_path() / place.delta->base;
    result.from_memory =
        options_.hold && held_.is(place.delta->base, run_.folder().files().facts(base));
    DeltaResult saved;
    if (result.from_memory) {
      run_.session().step(SaveStep::write);
      saved = write_delta(state, held_.saved(base), place.path, options);
    } else {
      const std::optional<ChainReader> chain = run_.base_of(place);
      if (!chain) return std::nullopt;
      run_.session().step(SaveStep::write);
      saved = write_delta(state, *chain, place.path, options);
    }
    note_written(place, saved);
    result.changed = saved.tensors - saved.same;
    return store::saved_delta(saved);
  }

  PublishedState write(Publication& publication) {
    store::SavePlace& place = publication.place;
    const StateSource& state = publication.state;
    const SaveOptions& save = publication.options.save;
    PublishedState result;
    is_written_ = false;
    const auto full = [&](const store::SavePlace& at) {
      run_.session().step(SaveStep::write);
      const SaveResult saved =
          state::save_state(state, at.path, run_.save_options(save, at.info.replace));
      note_written(at, saved);
      result.changed = result.tensors = saved.tensors;
      result.from_memory = false;
      return store::saved_file(saved);
    };
    const auto delta = [&](store::SavePlace& at) {
      return write_delta_at(at, state, save, result);
    };
    try {
      static_cast<StoredCheckpoint&>(result) = run_.save_at(place, full, delta);
    } catch (...) {
      held_.forget();
      if (is_written_ && !place.visible_seconds) remove_written(place);
      throw;
    }
    result.tensors = static_cast<std::uint32_t>(written_.digests.size());
    result.visible_seconds = *place.visible_seconds;
    result.seconds = place.watch.seconds();
    return result;
  }

  void remove_written(const store::SavePlace& place) const {
    try {
      run_.folder().files().remove(place.path);
      container::remove_sha256_file(place.path, run_.session().output());
    } catch (const std::exception& failure) {
      // The next writer of the run finds a checkpoint of that step.
      run_.session().warn(fmt::format("step {} of {}, which was not published, stays: {}",
                                      place.step, place.phase, failure.what()));
    }
  }

  std::unique_ptr<RunWriter> own_;
  RunWriter* writer_;
  RunImpl& run_;
  PublisherOptions options_;
  const io::OwnProcess process_{};
  store::HeldState held_;
  store::WrittenState written_;  ///< what was written last
  bool is_written_ = false;
  std::vector<Tensor> spare_;  ///< of the state that is published in the background
  std::thread background_;
};

Publisher::Publisher(const std::filesystem::path& run, PublisherOptions options,
                     RunWriterOptions run_options)
    : impl_(std::make_unique<Impl>(run, std::move(options), std::move(run_options))) {}
Publisher::Publisher(RunWriter& run, PublisherOptions options)
    : impl_(std::make_unique<Impl>(run, std::move(options))) {}
// In a forked child its thread is not there.
Publisher::~Publisher() {
  if (impl_ && impl_->is_foreign()) impl_.leave();
}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&& other) noexcept {
  const Publisher last(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

const Run& Publisher::run() const noexcept {
  return impl_->run();
}
RunWriter& Publisher::writer() noexcept {
  return impl_->writer();
}
const std::string& Publisher::phase() const noexcept {
  return impl_->phase();
}
std::optional<std::uint64_t> Publisher::newest() const {
  const std::optional<CheckpointEntry> latest = impl_->run().latest(impl_->phase());
  return latest ? std::optional(latest->step) : std::nullopt;
}
void Publisher::wait() {
  impl_->wait();
}

Writer Publisher::new_checkpoint(std::uint64_t step, SaveOptions options) {
  const store::SavePlace place = impl_->place(step);
  return impl_->writer().new_checkpoint(impl_->phase(), step, std::move(options),
                                        place.info.replace);
}

PublishedState Publisher::publish(std::uint64_t step, const StateSource& state,
                                  const PublishOptions& options) {
  return impl_->publish(impl_->of_state(step, state, options));
}
PublishedState Publisher::publish(std::uint64_t step, const BrainState& brain,
                                  const PublishOptions& options,
                                  const BrainSaveOptions& brain_options) {
  return impl_->publish(impl_->of_brain(step, brain, options, brain_options));
}
PublishedState Publisher::publish(const Writer& writer, const PublishOptions& options) {
  return impl_->publish(impl_->of_writer(writer, options));
}

SaveHandle<PublishedState> Publisher::publish_async(std::uint64_t step, const StateSource& state,
                                                    const PublishOptions& options) {
  return impl_->publish_later(impl_->of_state(step, state, options));
}
SaveHandle<PublishedState> Publisher::publish_async(std::uint64_t step, const BrainState& brain,
                                                    const PublishOptions& options,
                                                    const BrainSaveOptions& brain_options) {
  return impl_->publish_later(impl_->of_brain(step, brain, options, brain_options));
}
SaveHandle<PublishedState> Publisher::publish_async(const Writer& writer,
                                                    const PublishOptions& options) {
  return impl_->publish_later(impl_->of_writer(writer, options));
}

}  // namespace thalia
