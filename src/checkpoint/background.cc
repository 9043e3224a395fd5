#include "checkpoint/background.h"

#include <utility>

#include "checkpoint/packing.h"

namespace thalia::checkpoint {
namespace {

std::vector<state::StoredTensor*> tensors_of(state::StoredBrain& brain) {
  std::vector<state::StoredTensor*> tensors;
  state::for_each_stored(
      brain, [&](state::StoredTensor& tensor, const auto&) { tensors.push_back(&tensor); });
  return tensors;
}

}  // namespace

BrainSave::BrainSave(state::StoredBrain stored, const std::filesystem::path& target,
                     const SaveOptions& options, Snapshot snapshot,
                     std::shared_ptr<BrainOutcome<BrainSaveResult>> outcome)
    : snapshot_(snapshot),
      stored_(std::move(stored)),
      writer_(writer_of(stored_, target, options)),
      save_(writer_, snapshot),
      outcome_(std::move(outcome)) {}

SaveResult BrainSave::run() {
  return static_cast<SaveResult&>(outcome_->result()) = save_.run();
}

void BrainSave::begin(ByteSpan memory, Work work) noexcept {
  save_.begin(memory, std::move(work));
  if (snapshot_ == Snapshot::copy) stored_ = {};  // what was converted is in the copy
}

BrainDeltaSave::BrainDeltaSave(state::StoredBrain stored, const Work& work, Snapshot snapshot,
                               Save save, std::shared_ptr<BrainOutcome<BrainDeltaResult>> outcome)
    : stored_(std::move(stored)),
      tensors_(tensors_of(stored_)),
      work_(work),
      save_(std::move(save)),
      outcome_(std::move(outcome)) {
  if (snapshot == Snapshot::borrowed) return;
  for (const state::StoredTensor* tensor : tensors_) plan_.add(tensor->tensor.bytes());
}

void BrainDeltaSave::copy(MutableByteSpan memory, unsigned threads) {
  if (plan_.bytes() == 0) return;
  plan_.copy(memory, threads);
  // Here and not in begin(), which must not fail. The thread that runs the save keeps the memory.
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    copies_.push_back(
        Tensor::adopt(tensors_[i]->tensor.layout(), plan_.payload(i, memory), nullptr));
}

void BrainDeltaSave::begin(ByteSpan, Work work) noexcept {
  for (std::size_t i = 0; i < copies_.size(); ++i) tensors_[i]->tensor = std::move(copies_[i]);
  work_ = std::move(work);
}

SaveResult BrainDeltaSave::run() {
  return outcome_->result() = save_(stored_, work_);
}

}  // namespace thalia::checkpoint
