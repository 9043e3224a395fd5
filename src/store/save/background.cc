#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "container/background/in_save.h"
#include "store/save/impl.h"
#include "thalia/error.h"

namespace thalia {

namespace store {

bool StoreOutcome::done() const {
  if (has_ended) return true;
  process_.require("the save");
  return false;
}

// A callback of the save would wait for itself, and a forked child for threads that it has not.
void StoreOutcome::require_waitable() const {
  save->wait_for({});
}

bool StoreOutcome::wait_for(std::chrono::nanoseconds time) {
  if (done()) return true;
  require_waitable();
  std::unique_lock lock(mutex);
  return ended.wait_for(lock, time, [&] { return has_ended.load(); });
}

std::exception_ptr StoreOutcome::see_error() noexcept {
  return has_ended ? error : nullptr;
}

StoredCheckpoint StoreOutcome::wait() {
  if (!done()) {
    require_waitable();
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return has_ended.load(); });
  }
  if (error) std::rethrow_exception(error);
  return result;
}

}  // namespace store

bool RunWriter::Impl::end_later() noexcept {
  if (!publisher_.joinable()) return false;
  if (publisher_.get_id() != std::this_thread::get_id() && !detail::InSave::any()) return false;
  const std::lock_guard lock(queue_mutex_);
  closing_ = is_left_ = true;
  queue_changed_.notify_all();
  return true;
}

SaveHandle<StoredCheckpoint> RunWriter::Impl::publish_later(
    std::shared_ptr<detail::SaveControl> save, store::SavePlace place,
    std::function<store::SavedFile()> saved_file, store::SaveAt full) {
  auto state = std::make_shared<store::StoreOutcome>(std::move(save), std::move(place),
                                                     std::move(saved_file), std::move(full));
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(state);
    if (!publisher_.joinable()) publisher_ = std::thread([this] { work(); });
  }
  queue_changed_.notify_all();
  return SaveHandle<StoredCheckpoint>(std::move(state));
}

void RunWriter::Impl::tell_failure(const store::SavePlace& place,
                                   const std::exception& failure) const noexcept {
  try {
    session().warn(
        fmt::format("step {} of {} was not saved: {}", place.step, place.phase, failure.what()));
  } catch (...) {
    // What a callback throws is not the save's.
  }
}

void RunWriter::Impl::avoid_base(const store::SavePlace& place) const {
  if (!place.delta) return;
  const std::unique_lock held = lock();
  unsigned& left = full_saves_left_[place.phase];
  left = std::max(left, 1U);
}

// A checkpoint that is dear to read is better than none.
store::SavedFile RunWriter::Impl::replace_or_keep(store::SavePlace& place, store::SavedFile delta,
                                                  const store::SaveAt& full) {
  try {
    return replace_if_dear(place, delta, full);
  } catch (const std::exception& failure) {
    session().warn(fmt::format("step {} of {} stays a delta that is dear to read: {}", place.step,
                               place.phase, failure.what()));
  }
  delta.is_delta = true;
  return delta;
}

// A save's place holds its base until the save is published.
void RunWriter::Impl::work() noexcept {
  std::unique_lock lock(queue_mutex_);
  while (true) {
    queue_changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      if (!is_left_) return;
      lock.unlock();
      publisher_.detach();
      delete this;  // NOLINT(cppcoreguidelines-owning-memory): it is left to this thread
      return;
    }
    const std::shared_ptr<store::StoreOutcome> state = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    StoredCheckpoint result;
    std::exception_ptr error;
    try {
      store::SavedFile file = state->saved_file();
      const double seconds = file.seconds;
      if (file.is_delta) file = replace_or_keep(state->place, std::move(file), state->full);
      result = publish(state->place, file);
      result.seconds = seconds;
    } catch (const CancelledError&) {
      error = std::current_exception();
    } catch (const std::exception& failure) {
      error = std::current_exception();
      if (dynamic_cast<const IntegrityError*>(&failure) != nullptr) avoid_base(state->place);
      // Perhaps nobody waits for it.
      tell_failure(state->place, failure);
    }
    {
      const std::lock_guard ended(state->mutex);
      state->result = std::move(result);
      state->error = std::move(error);
      state->saved_file = {};
      state->full = {};
      state->place.hold.reset();
      state->place.replacement.reset();
      state->has_ended = true;
    }
    state->ended.notify_all();
    lock.lock();
  }
}

}  // namespace thalia
