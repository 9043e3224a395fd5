// Tensors read ahead, past the page cache, and handed out as they arrive.
#include "thalia/stream.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/file.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// Its destructor waits for reads that are under way, which may write to destinations.
struct Stream {
  std::vector<HeldBuffer> held{};
  std::stop_source stop{};
  std::optional<StreamReader> stream{};

  ~Stream() {
    const Unlocked unlocked;
    stream.reset();
  }
};

StreamOrder order_of(const std::string& name) {
  return chosen<StreamOrder>("order", name,
                             {{"as_asked", StreamOrder::as_asked},
                              {"file", StreamOrder::file},
                              {"as_completed", StreamOrder::as_completed}});
}

using Destination = decltype(StreamOptions::destination);

// The buffers have for each tensor, none of them twice, a writable buffer of exactly its bytes, or
// None for memory of the stream.
Destination into(const std::vector<FileTensor>& tensors, const nb::list& buffers,
                 std::vector<HeldBuffer>& held) {
  if (buffers.size() != tensors.size()) {
    throw UsageError(ErrorCode::size_mismatch, {},
                     {.field = "destinations",
                      .value = std::to_string(buffers.size()),
                      .bound = std::to_string(tensors.size())});
  }
  // Names of a file: they stay where they are as long as it is open.
  std::map<std::pair<std::string_view, std::string_view>, MutableByteSpan> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& view = tensors[i].view;
    if (!buffers[i].is_none()) held.emplace_back(buffers[i], HeldBuffer::Use::write);
    const MutableByteSpan bytes = buffers[i].is_none() ? MutableByteSpan() : held.back().writable();
    if (places.try_emplace({Reader::region_name(view), view.name()}, bytes).second) continue;
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "destinations",
                      .tensor = std::string(view.name()),
                      .value = "a tensor twice",
                      .bound = "each once"});
  }
  return [places = std::move(places)](const TensorView& view, std::uint64_t) {
    return places.at({Reader::region_name(view), view.name()});
  };
}

std::unique_ptr<Stream> open_stream(const File& file, const std::vector<FileTensor>& tensors,
                                    const std::string& order, unsigned threads,
                                    std::optional<std::uint64_t> memory_bytes,
                                    const std::optional<ListOf<nb::any>>& destinations) {
  auto self = std::make_unique<Stream>();
  StreamOptions options{
      .order = order_of(order),
      .work = {.threads = threads, .memory_bytes = memory_bytes, .cancel = self->stop.get_token()}};
  if (destinations) options.destination = into(tensors, *destinations, self->held);
  std::vector<TensorView> views;
  for (const FileTensor& tensor : tensors) views.push_back(tensor.view);
  const Unlocked unlocked;
  if (file.chain) {
    self->stream.emplace(file.chain->stream(views, options));
  } else {
    self->stream.emplace(file.reader, views, options);
  }
  return self;
}

// (place among those asked for, bytes); None for bytes in their destination, and at the end.
ObjectLike<std::optional<std::pair<std::size_t, std::optional<OwnedBytes>>>> next(Stream& self) {
  std::optional<StreamedTensor> tensor = interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { self.stop.request_stop(); });
    return self.stream->next();
  });
  if (!tensor) return nb::object(nb::none());
  const bool is_ours = tensor->memory != nullptr || tensor->bytes.empty();
  if (!is_ours) return nb::make_tuple(tensor->index, nb::none());
  return nb::make_tuple(tensor->index, OwnedBytes{tensor->bytes, std::move(tensor->memory)});
}

}  // namespace

void bind_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def_static("open", open_stream, nb::arg("file"), nb::arg("tensors"), nb::arg("order"),
                  nb::arg("threads"), nb::arg("memory_bytes").none(),
                  nb::arg("destinations").none())
      .def("next", next);
}

}  // namespace thalia::python
