#include "container/background/in_save.h"

#include "thalia/error.h"

namespace thalia::detail {
namespace {

thread_local const InSave* innermost_save = nullptr;

}  // namespace

InSave::InSave(const SaveQueue* queue) noexcept : queue_(queue), outer_(innermost_save) {
  innermost_save = this;
}

InSave::~InSave() {
  innermost_save = outer_;
}

bool InSave::of(const SaveQueue* queue) noexcept {
  for (const InSave* save = innermost_save; save != nullptr; save = save->outer_)
    if (save->queue_ == queue) return true;
  return false;
}

bool InSave::any() noexcept {
  return innermost_save != nullptr;
}

void InSave::refuse(const SaveQueue* queue) {
  if (of(queue)) {
    throw UsageError(ErrorCode::wrong_state,
                     "a callback of a save uses its saver, and would wait for itself");
  }
}

}  // namespace thalia::detail
