// A writer that is committed in the background.
#pragma once

#include <functional>
#include <optional>

#include "container/background/background_save.h"
#include "container/background/snapshot_plan.h"
#include "container/write/file_save.h"
#include "thalia/async_save.h"

namespace thalia::container {

/// Takes the writer over with begin(); until then it is the caller's.
class WriterSave final : public BackgroundSave {
 public:
  /// Makes a file of what the writer has declared, whose payloads stay until it is back.
  using Save = std::function<SaveResult(Writer&)>;

  /// @param save by itself Writer::commit(). @throws as finish_streaming().
  WriterSave(Writer& writer, Snapshot snapshot, std::function<void()> ready = {}, Save save = {});

  std::uint64_t bytes() const noexcept override { return plan_ ? plan_->bytes() : 0; }
  const Work& work() const noexcept override { return file_.options().work; }
  void copy(MutableByteSpan memory, unsigned threads) override;
  void begin(ByteSpan memory, Work work) noexcept override;
  SaveResult run() override;

 private:
  Writer* writer_;
  FileSave& file_;  ///< stays where it is when the writer is moved
  std::optional<SnapshotPlan> plan_;
  std::function<void()> ready_;
  Save save_;
  std::optional<Writer> own_;
};

}  // namespace thalia::container
