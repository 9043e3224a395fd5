// The public class only forwards to the queue that runs saves. A handle keeps the state of its save
// alive and not the queue, so it may outlive the saver.
#include "thalia/async_save.h"

#include <utility>

#include "base/inside.h"
#include "container/background/queue.h"
#include "container/background/state.h"
#include "container/background/writer_save.h"

namespace thalia {

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

SaveHandle<> AsyncSaver::save_async(Writer&& writer, Snapshot snapshot,
                                    std::function<void()> ready) {
  return queue_->save(std::make_unique<container::WriterSave>(writer, snapshot, std::move(ready)));
}

SaveHandle<> container::save_async(AsyncSaver& saver, std::unique_ptr<BackgroundSave> save) {
  return detail::Inside::queue(saver)->save(std::move(save));
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
