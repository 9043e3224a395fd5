// The public classes only forward: to the queue that runs saves, and to the state of one save,
// which its handles share. A handle keeps the state alive and not the queue, so it may outlive the
// saver.
#include "thalia/async_save.h"

#include <utility>

#include "container/background/queue.h"
#include "container/background/state.h"
#include "container/background/writer_save.h"

namespace thalia {

SaveProgress SaveHandle::progress() const noexcept {
  return state_->progress();
}
bool SaveHandle::done() const {
  return state_->done();
}
bool SaveHandle::skipped() const noexcept {
  return state_->skipped();
}
SaveResult SaveHandle::wait() const {
  return state_->wait();
}
bool SaveHandle::wait_for(std::chrono::nanoseconds time) const {
  return state_->wait_for(time);
}
std::exception_ptr SaveHandle::error() const noexcept {
  return state_->see_error();
}

void SaveHandle::cancel() const {
  if (state_->done()) return;
  // Without the saver there is no save left: it waited for all of them.
  if (const auto queue = state_->queue()) queue->cancel(*state_);
}

AsyncSaver::AsyncSaver(AsyncSaveOptions options)
    : queue_(std::make_shared<detail::SaveQueue>(std::move(options))) {
  // Not in the queue's constructor: the thread and the exit guard need a shared pointer to it.
  queue_->start();
}

AsyncSaver::AsyncSaver(const Writer& first, AsyncSaveOptions options)
    : AsyncSaver(std::move(options)) {
  reserve(first);
}

AsyncSaver::~AsyncSaver() {
  queue_->close();
}

SaveHandle AsyncSaver::save_async(Writer&& writer, Snapshot snapshot, std::function<void()> ready) {
  return queue_->save(std::make_unique<container::WriterSave>(writer, snapshot, std::move(ready)));
}

SaveHandle container::AsyncSaverAccess::save(AsyncSaver& saver,
                                             std::unique_ptr<BackgroundSave> save) {
  return saver.queue_->save(std::move(save));
}

void AsyncSaver::reserve(std::uint64_t bytes, unsigned snapshots, const std::stop_token& cancel) {
  queue_->reserve(bytes, snapshots, cancel);
}

void AsyncSaver::reserve(const Writer& declared, unsigned snapshots,
                         const std::stop_token& cancel) {
  queue_->reserve(declared, snapshots, cancel);
}

void AsyncSaver::wait_until_reserved() {
  queue_->wait_until_reserved();
}

bool AsyncSaver::wait_all_for(std::chrono::nanoseconds time) {
  return queue_->wait_all_for(time);
}

void AsyncSaver::wait_all() {
  queue_->wait_all();
}

void AsyncSaver::check_caller() const {
  queue_->check_caller();
}

std::uint64_t AsyncSaver::snapshot_bytes() const noexcept {
  return queue_->snapshot_bytes();
}

}  // namespace thalia
