#include "container/background/writer_save.h"

#include <utility>

#include "container/write/writer_access.h"

namespace thalia::container {

WriterSave::WriterSave(Writer& writer, Snapshot snapshot)
    : writer_(&writer), file_(WriterAccess::settle(writer)) {
  if (snapshot == Snapshot::copy) plan_.emplace(file_.draft());
}

void WriterSave::copy(MutableByteSpan memory, unsigned threads) {
  if (plan_) plan_->copy(memory, threads);
}

void WriterSave::begin(ByteSpan memory, Work work) noexcept {
  if (plan_) plan_->adopt(file_.draft(), memory);
  file_.set_work(std::move(work));
  own_.emplace(std::move(*writer_));
}

}  // namespace thalia::container
