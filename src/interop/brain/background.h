// Saves of a brain that an AsyncSaver writes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "container/background/background_save.h"
#include "container/background/snapshot_plan.h"
#include "container/background/writer_save.h"
#include "model/brain/stored_brain.h"
#include "thalia/brain_checkpoint.h"

namespace thalia::interop {

/// A whole state. Without a copy, its tensors are shared with the brain until the save is done.
class BrainSave final : public container::BackgroundSave {
 public:
  /// @param result is completed by run(). @throws as writer_of() and WriterSave.
  BrainSave(model::StoredBrain stored, const std::filesystem::path& target,
            const SaveOptions& options, Snapshot snapshot, std::shared_ptr<BrainSaveResult> result);

  std::uint64_t bytes() const noexcept override { return save_.bytes(); }
  const Work& work() const noexcept override { return save_.work(); }
  void copy(MutableByteSpan memory, unsigned threads) override { save_.copy(memory, threads); }
  void begin(ByteSpan memory, Work work) noexcept override;
  SaveResult run() override;

 private:
  const Snapshot snapshot_;
  model::StoredBrain stored_;
  Writer writer_;
  container::WriterSave save_;
  detail::Shared<BrainSaveResult> result_;
};

/// What a state has that its base has not.
class BrainDeltaSave final : public container::BackgroundSave {
 public:
  /// Saves the state, with this work.
  using Save = std::function<BrainDeltaResult(const model::StoredBrain& stored, const Work& work)>;

  /// @param result is set by run().
  BrainDeltaSave(model::StoredBrain stored, const Work& work, Snapshot snapshot, Save save,
                 std::shared_ptr<BrainDeltaResult> result);

  std::uint64_t bytes() const noexcept override { return plan_.bytes(); }
  const Work& work() const noexcept override { return work_; }
  void copy(MutableByteSpan memory, unsigned threads) override;
  void begin(ByteSpan memory, Work work) noexcept override;
  SaveResult run() override;

 private:
  model::StoredBrain stored_;
  std::vector<model::StoredTensor*> tensors_;  ///< of `stored_`, in the order of its file
  container::SnapshotPlan plan_;               ///< of them; empty where nothing is copied
  std::vector<Tensor> copies_;                 ///< of the same, until begin()
  Work work_;
  Save save_;
  detail::Shared<BrainDeltaResult> result_;
};

}  // namespace thalia::interop
