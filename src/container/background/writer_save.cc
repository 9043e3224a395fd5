#include "container/background/writer_save.h"

#include <utility>

#include "base/fail.h"
#include "container/write/file_save.h"

namespace thalia::container {

WriterSave::WriterSave(Writer& writer, Snapshot snapshot, std::function<void()> ready, Save save)
    : writer_(&writer),
      file_(finish_streaming(writer)),
      ready_(std::move(ready)),
      save_(std::move(save)) {
  if (snapshot == Snapshot::copy) plan_.emplace(file_.plan());
}

void WriterSave::copy(MutableByteSpan memory, unsigned threads) {
  if (plan_) plan_->copy(memory, threads);
}

void WriterSave::begin(ByteSpan memory, Work work) noexcept {
  if (plan_) plan_->adopt(file_.plan(), memory);
  file_.set_work(std::move(work));
  own_.emplace(std::move(*writer_));
}

SaveResult WriterSave::run() {
  if (ready_) {
    stop_if_cancelled(work().cancel);
    ready_();
  }
  return save_ ? save_(*own_) : own_->commit();
}

}  // namespace thalia::container
