// Saves of a brain that an AsyncSaver writes.
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "container/background/background_save.h"
#include "container/background/snapshot_plan.h"
#include "container/background/writer_save.h"
#include "state/brain/stored_brain.h"
#include "thalia/async_save.h"
#include "thalia/state/checkpoint.h"

namespace thalia::checkpoint {

/// What the handles of a brain's save share: the save, and what it made.
template <typename Result>
class BrainOutcome final : public detail::SaveOutcome<Result> {
 public:
  /// Set by the save, before it has ended.
  Result& result() noexcept { return result_; }
  /// Before anybody has a handle.
  void set_save(SaveHandle<> save) { save_ = std::move(save); }

  SaveProgress progress() const noexcept override { return save_->progress(); }
  bool done() const override { return save_->done(); }
  bool skipped() const noexcept override { return save_->skipped(); }
  Result wait() override {
    save_->wait();
    return result_;
  }
  bool wait_for(std::chrono::nanoseconds time) override { return save_->wait_for(time); }
  void cancel() override { save_->cancel(); }
  std::exception_ptr see_error() noexcept override { return save_->error(); }

 private:
  std::optional<SaveHandle<>> save_;
  Result result_{};
};

/// A whole state. Without a copy, its tensors are shared with the brain until the save is done.
class BrainSave final : public container::BackgroundSave {
 public:
  /// @param outcome whose result is completed by run(). @throws as writer_of() and WriterSave.
  BrainSave(state::StoredBrain stored, const std::filesystem::path& target,
            const SaveOptions& options, Snapshot snapshot,
            std::shared_ptr<BrainOutcome<BrainSaveResult>> outcome);

  std::uint64_t bytes() const noexcept override { return save_.bytes(); }
  const Work& work() const noexcept override { return save_.work(); }
  void copy(MutableByteSpan memory, unsigned threads) override { save_.copy(memory, threads); }
  void begin(ByteSpan memory, Work work) noexcept override;
  SaveResult run() override;

 private:
  const Snapshot snapshot_;
  state::StoredBrain stored_;
  Writer writer_;
  container::WriterSave save_;
  const std::shared_ptr<BrainOutcome<BrainSaveResult>> outcome_;
};

/// What a state has that its base has not.
class BrainDeltaSave final : public container::BackgroundSave {
 public:
  /// Saves the state, with this work.
  using Save = std::function<BrainDeltaResult(const state::StoredBrain& stored, const Work& work)>;

  /// @param outcome whose result is set by run().
  BrainDeltaSave(state::StoredBrain stored, const Work& work, Snapshot snapshot, Save save,
                 std::shared_ptr<BrainOutcome<BrainDeltaResult>> outcome);

  std::uint64_t bytes() const noexcept override { return plan_.bytes(); }
  const Work& work() const noexcept override { return work_; }
  void copy(MutableByteSpan memory, unsigned threads) override;
  void begin(ByteSpan memory, Work work) noexcept override;
  SaveResult run() override;

 private:
  state::StoredBrain stored_;
  std::vector<state::StoredTensor*> tensors_;  ///< of `stored_`, in the order of its file
  container::SnapshotPlan plan_;               ///< of them; empty if nothing is copied
  std::vector<Tensor> copies_;                 ///< of the same, until begin()
  Work work_;
  Save save_;
  const std::shared_ptr<BrainOutcome<BrainDeltaResult>> outcome_;
};

}  // namespace thalia::checkpoint
