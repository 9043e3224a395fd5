// A stream and the tensor that it handed out last, which makes room before the next one is asked
// for. Calls back into C carry a tensor that lives for the call.
#include "thalia/c/reader.h"

#include <array>
#include <optional>
#include <stop_token>
#include <utility>

#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/stream.h"

using namespace thalia;
using namespace thalia::c;

struct thalia_stream {
  std::stop_source stop;
  StreamReader reader;
  std::optional<StreamedTensor> item{};
  std::optional<thalia_tensor> tensor{};  ///< of the item
};

namespace {

constexpr std::array kOrders{StreamOrder::file, StreamOrder::as_completed};

StreamOptions stream_options(const thalia_stream_options* given, std::stop_token cancel) {
  const thalia_stream_options from = taken(given, "options");
  StreamOptions options;
  options.order = chosen(kOrders, from.order, "order");
  options.io = chosen(kIoModes, from.io, "io");
  options.work.threads = from.threads;
  options.work.cancel = std::move(cancel);
  set_unless_zero(options.queue_depth, from.queue_depth);
  set_unless_zero(options.work.memory_bytes, from.memory_bytes);
  if (from.destination != nullptr) {
    options.destination = [from](const TensorView& view, std::uint64_t bytes) {
      const thalia_tensor tensor{view};
      void* const memory = from.destination(from.context, &tensor, bytes);
      return memory == nullptr ? MutableByteSpan() : memory_at(memory, bytes, "destination");
    };
  }
  if (from.damaged != nullptr) {
    options.damaged = [from](const TensorView& view, const Error& error) {
      const thalia_tensor tensor{view};
      keep_error(error);
      from.damaged(from.context, &tensor);
    };
  }
  return options;
}

}  // namespace

thalia_status thalia_stream_open(const thalia_reader* reader, const thalia_stream_options* options,
                                 thalia_stream** stream) {
  return guarded([&] {
    thalia_stream*& place = emptied(stream, "stream");
    const std::stop_source stop;
    place = new thalia_stream{
        stop, StreamReader(opened(reader), stream_options(options, stop.get_token()))};
  });
}

thalia_status thalia_stream_next(thalia_stream* stream, thalia_streamed* item) {
  return guarded([&]() -> thalia_status {
    thalia_stream& from = required(stream, "stream");
    give(required(item, "item"), thalia_streamed{}, "item");
    from.tensor.reset();
    from.item.reset();
    from.item = from.reader.next();
    if (!from.item) return THALIA_END;
    from.tensor.emplace(thalia_tensor{from.item->tensor});
    thalia_streamed streamed{};
    streamed.tensor = &*from.tensor;
    streamed.data = from.item->bytes.data();
    streamed.bytes = from.item->bytes.size();
    give(*item, streamed, "item");
    return THALIA_OK;
  });
}

thalia_status thalia_stream_cancel(thalia_stream* stream) {
  return guarded([&] { required(stream, "stream").stop.request_stop(); });
}

void thalia_stream_close(thalia_stream* stream) {
  delete stream;
}
