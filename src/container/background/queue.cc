// One mutex guards the lists, the arenas and the flags; one condition variable
// signals every change, as waits are few and long. Copying, writing, callbacks and touching pages
// happen without the lock. A save is in unfinished_ from its admission until after its on_done; in
// between its job belongs to exactly one owner: the thread that calls save(), then waiting_, then
// the thread that runs it. One thread writes, in the order of waiting_, so two saves to one path
// cannot overtake each other. docs/contribute/design.md, "Saving beside the training".
#include "container/background/queue.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/background/exit_guard.h"
#include "container/background/in_save.h"
#include "container/background/snapshot_plan.h"
#include "container/write/file_save.h"

namespace thalia::detail {
namespace {

// A caller who never asks must not make errors pile up.
constexpr std::size_t kMostErrorsKept = 100;
// How much reserved memory is touched between two looks at the waiting saves: one huge page.
constexpr std::uint64_t kTouchedTogether = 2 << 20;

AsyncSaveOptions checked(AsyncSaveOptions options) {
  check_option("max_unfinished", options.max_unfinished, 1, 1024);
  check_option("niceness", options.niceness, 0, 19);
  if (options.background_threads == 0)
    options.background_threads = std::clamp(resolve_threads(0) / 4, 1u, 4u);
  return options;
}

// For machines that do not say how much memory they have; small enough to be rounded up and added.
constexpr std::uint64_t kNoBound = std::uint64_t{1} << 62;

std::uint64_t snapshot_bound(std::uint64_t asked_for) {
  const std::uint64_t machine = io::machine_memory();
  const std::uint64_t bound = asked_for != 0 ? asked_for : (machine != 0 ? machine / 2 : kNoBound);
  return std::min(bound, kNoBound);
}

}  // namespace

SaveQueue::SaveQueue(AsyncSaveOptions options)
    : options_(checked(std::move(options))),
      most_unfinished_(options_.when_busy == WhenBusy::wait || options_.when_busy == WhenBusy::skip
                           ? 1
                           : options_.max_unfinished),
      arenas_(snapshot_bound(options_.max_snapshot_bytes)) {
  // So pushing to them never allocates: no admitted save fails for that, and no error is lost.
  unfinished_.reserve(most_unfinished_);
  waiting_.reserve(most_unfinished_);
  failed_.reserve(kMostErrorsKept + most_unfinished_);
}

void SaveQueue::start() {
  watch_at_exit(shared_from_this());
  try {
    thread_ = std::thread([self = shared_from_this()] {
      self->work();
      unwatch_at_exit(*self);
    });
  } catch (const std::system_error& error) {
    unwatch_at_exit(*this);
    throw IoError("start of a thread", error.code().value());
  }
}

void SaveQueue::close() noexcept {
  if (!mutex_.process().is_this()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  // A callback may hold the last reference to its own saver.
  if (InSave::of(this)) return thread_.detach();
  thread_.join();
}

void SaveQueue::cancel_all(std::chrono::steady_clock::time_point deadline) noexcept {
  if (!mutex_.process().is_this()) return;
  if (InSave::of(this)) return;  // a callback exits
  cancel_unfinished();
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return unfinished_.empty(); });
}

void SaveQueue::require_room(std::uint64_t bytes) const {
  if (bytes <= arenas_.bound()) return;
  fail_argument(ErrorCode::bad_argument, "max_snapshot_bytes",
                fmt::format("{} bytes to copy", bytes), std::to_string(arenas_.bound()),
                "raise max_snapshot_bytes, or save with Snapshot::borrowed, which copies nothing");
}

void SaveQueue::check_caller() const {
  InSave::refuse(this);
  mutex_.process().require(mutex_.what());
}

SaveQueue::Lock SaveQueue::lock_outside() const {
  check_caller();
  return Lock(mutex_);
}

SaveHandle<> SaveQueue::save(std::unique_ptr<container::BackgroundSave> save) {
  check_caller();  // before others are cancelled
  // Everything that can refuse the save comes first; until it begins, an error leaves all with the
  // caller.
  const std::uint64_t bytes = save->bytes();
  require_room(bytes);
  if (options_.when_busy == WhenBusy::replace) cancel_unfinished();
  std::unique_ptr<Job> job = admit(bytes, save->work().cancel);
  const std::shared_ptr<SaveState> state = job->state;
  if (state->skipped()) return SaveHandle<>(state);
  try {
    Work work = save->work();
    if (work.threads == 0) work.threads = options_.background_threads;
    // A plain pointer: the job holds the state until the save, with this function, is gone.
    work.progress = [this, state = state.get(), caller = work.progress](std::uint64_t done,
                                                                        std::uint64_t total) {
      const InSave within(this);
      state->advance(done, total);
      if (caller) caller(done, total);
    };
    work.cancel = state->stop().get_token();
    job->link.emplace(save->work().cancel, RequestStop{state->stop()});
    const MutableByteSpan memory = job->arena ? job->arena->memory.bytes() : MutableByteSpan{};
    save->copy(memory, options_.snapshot_threads);
    // Nothing fails from here on: a plan that borrows from the arena must not go back to the
    // caller.
    save->begin(memory, std::move(work));
    job->save = std::move(save);
  } catch (...) {
    retract(*job);
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
  return SaveHandle<>(state);
}

// One by one, and without the lock in between: cancel() runs a waiting save to its end, with its
// callback.
void SaveQueue::cancel_unfinished() noexcept {
  while (true) {
    std::shared_ptr<SaveState> state;
    {
      const std::lock_guard lock(mutex_);
      const auto found =
          std::find_if(unfinished_.begin(), unfinished_.end(),
                       [](const auto& older) { return !older->stop().stop_requested(); });
      if (found == unfinished_.end()) return;
      state = *found;
    }
    cancel(*state);
  }
}

// A save that only waits is ended here, on the caller's thread: the writing thread may be busy for
// long. One that runs sees the stop at its next extent or chunk.
void SaveQueue::cancel(SaveState& state) noexcept {
  state.stop().request_stop();
  std::unique_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
      return waiting->state.get() == &state;
    });
    if (found == waiting_.end()) return;
    job = std::move(*found);
    waiting_.erase(found);
  }
  run(std::move(job));  // which ends at its first look
}

// @throws CancelledError
template <typename Condition>
void SaveQueue::wait(Lock& lock, const std::stop_token& cancel, Condition condition) {
  if (!changed_.wait(lock, cancel, condition)) stop_if_cancelled(cancel);
}

// Waits until there is a place and memory for one more save, and takes both under one lock, so that
// two callers cannot take the same. What is skipped takes neither.
std::unique_ptr<SaveQueue::Job> SaveQueue::admit(std::uint64_t bytes,
                                                 const std::stop_token& cancel) {
  auto job = std::make_unique<Job>();
  job->state = std::make_shared<SaveState>(weak_from_this());
  Lock lock = lock_outside();
  // One that its handles say is done may be in the list for a moment longer.
  if (options_.when_busy == WhenBusy::skip &&
      !std::ranges::all_of(unfinished_, [](const auto& other) { return other->has_ended(); })) {
    job->state->skip();
    return job;
  }
  wait(lock, cancel, [&] { return unfinished_.size() < most_unfinished_ && arenas_.fits(bytes); });
  job->arena = arenas_.acquire(bytes);
  unfinished_.push_back(job->state);
  return job;
}

// What was admitted and not begun: its place and its memory go to the next.
void SaveQueue::retract(Job& job) noexcept {
  {
    const std::lock_guard lock(mutex_);
    arenas_.release(std::move(job.arena));
    std::erase(unfinished_, job.state);
  }
  changed_.notify_all();
}

// Saves come first; while there are none, reserved memory is touched. Closing waits for all saves,
// but not for reserved memory.
void SaveQueue::work() noexcept {
  io::be_nice(options_.niceness);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty() || arenas_.has_untouched(); });
    if (!waiting_.empty()) {
      std::unique_ptr<Job> job = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      lock.unlock();
      run(std::move(job));
      lock.lock();
    } else if (closing_) {
      return;
    } else {
      touch_reserved(lock);
    }
  }
}

// Without the lock, and sharing the arena: a save may take it meanwhile and copy to it. Pages keep
// what is written to them.
void SaveQueue::touch_reserved(Lock& lock) noexcept {
  auto pages = arenas_.next_untouched(kTouchedTogether);
  touching_ = true;
  lock.unlock();
  pages->arena->memory.populate(pages->offset, pages->length);
  pages.reset();
  lock.lock();
  touching_ = false;
  if (!arenas_.has_untouched()) changed_.notify_all();
}

// Writes a save, then tells in this order: the handles, on_done, and everyone who waits for its
// place and memory. The save is destroyed first, so a thread that sees the end finds no temporary
// file.
void SaveQueue::run(std::unique_ptr<Job> job) noexcept {
  const InSave within(this);
  const std::shared_ptr<SaveState> state = job->state;
  Failure failure{.state = state};
  bool on_request = false;
  SaveResult result;
  try {
    result = job->save->run();
  } catch (const CancelledError&) {
    failure.error = std::current_exception();
    on_request = true;
  } catch (...) {
    failure.error = std::current_exception();
  }
  job->link.reset();
  job->save.reset();
  failure.error ? state->fail(failure.error) : state->finish(std::move(result));
  Failure stray;
  try {
    if (options_.on_done) options_.on_done(SaveHandle<>(state));
  } catch (...) {
    stray.error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    arenas_.release(std::move(job->arena));
    std::erase(unfinished_, state);
    // Handles may have reported errors since.
    std::erase_if(failed_, [](const Failure& kept) { return !kept.is_unseen(); });
    if (!on_request) keep(std::move(failure));
    keep(std::move(stray));
  }
  changed_.notify_all();
}

bool SaveQueue::Failure::is_unseen() const noexcept {
  return error && (!state || state->has_unseen_error());
}

void SaveQueue::keep(Failure failure) noexcept {
  if (!failure.is_unseen()) return;
  if (failed_.size() == kMostErrorsKept) failed_.erase(failed_.begin());
  failed_.push_back(std::move(failure));
}

void SaveQueue::wait_all() {
  Lock lock = lock_outside();
  changed_.wait(lock, [&] { return unfinished_.empty(); });
  throw_oldest(lock);
}

bool SaveQueue::wait_all_for(std::chrono::nanoseconds time) {
  Lock lock = lock_outside();
  if (!changed_.wait_for(lock, time, [&] { return unfinished_.empty(); })) return false;
  throw_oldest(lock);
  return true;
}

void SaveQueue::throw_oldest(Lock& lock) {
  while (!failed_.empty()) {
    // Taken out before it is thrown: each is thrown once.
    const Failure oldest = std::move(failed_.front());
    failed_.erase(failed_.begin());
    if (!oldest.is_unseen()) continue;
    if (oldest.state) oldest.state->see_error();
    lock.unlock();
    std::rethrow_exception(oldest.error);
  }
}

void SaveQueue::reserve(std::uint64_t bytes, unsigned snapshots, const std::stop_token& cancel) {
  // Alignment adds a sixteenth at most to large tensors (4096 bytes to 65,536), and hardly ever
  // more to small ones. That part is not touched beforehand.
  reserve(bytes + bytes / 16, bytes, snapshots, cancel);
}

void SaveQueue::reserve(const Writer& declared, unsigned snapshots, const std::stop_token& cancel) {
  const std::uint64_t bytes =
      container::SnapshotPlan(container::file_save_of(declared).plan()).bytes();
  reserve(bytes, bytes, snapshots, cancel);
}

void SaveQueue::reserve(std::uint64_t bytes, std::uint64_t touched, unsigned snapshots,
                        const std::stop_token& cancel) {
  if (touched == 0 || snapshots == 0) return;
  // All snapshots have to fit at once, so each gets at most an equal share of the limit.
  constexpr std::uint64_t kUnit = container::SnapshotArenas::kUnit;
  const std::uint64_t most = arenas_.bound() / snapshots / kUnit * kUnit;
  if (touched > most) {
    fail_argument(ErrorCode::bad_argument, "max_snapshot_bytes",
                  fmt::format("{} snapshots of {} bytes", snapshots, touched),
                  std::to_string(arenas_.bound()), "raise max_snapshot_bytes, or reserve less");
  }
  const std::uint64_t size = std::min(bytes, most);
  {
    Lock lock = lock_outside();
    wait(lock, cancel, [&] { return arenas_.fits(size, snapshots); });
    arenas_.reserve(size, touched, snapshots);
  }
  changed_.notify_all();
}

void SaveQueue::wait_until_reserved() {
  Lock lock = lock_outside();
  changed_.wait(lock, [&] { return !touching_ && !arenas_.has_untouched(); });
}

std::uint64_t SaveQueue::snapshot_bytes() const noexcept {
  if (!mutex_.process().is_this()) return 0;
  const std::lock_guard lock(mutex_);
  return arenas_.held();
}

}  // namespace thalia::detail
