// Tensors read ahead, past the page cache, and handed out as they arrive.
#include "thalia/stream.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/choices.h"
#include "python/file.h"
#include "python/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// Its destructor waits for reads that are under way.
struct Stream {
  std::stop_source stop{};
  std::optional<StreamReader> stream{};

  ~Stream() {
    const nb::gil_scoped_release unlocked;
    stream.reset();
  }
};

StreamOrder order_of(const std::string& name) {
  return chosen<StreamOrder>("order", name,
                             {{"as_asked", StreamOrder::as_asked},
                              {"file", StreamOrder::file},
                              {"as_completed", StreamOrder::as_completed}});
}

std::unique_ptr<Stream> open_stream(const File& file, const std::vector<FileTensor>& tensors,
                                    const std::string& order, unsigned threads,
                                    std::optional<std::uint64_t> memory_bytes) {
  auto self = std::make_unique<Stream>();
  const StreamOptions options{
      .order = order_of(order),
      .work = {.threads = threads, .memory_bytes = memory_bytes, .cancel = self->stop.get_token()}};
  std::vector<TensorView> views;
  for (const FileTensor& tensor : tensors) views.push_back(tensor.view);
  const nb::gil_scoped_release unlocked;
  if (file.chain) {
    self->stream.emplace(file.chain->stream(views, options));
  } else {
    self->stream.emplace(file.reader, views, options);
  }
  return self;
}

// (place among those asked for, bytes); None at the end.
nb::object next(Stream& self) {
  std::optional<StreamedTensor> tensor = interruptible([&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { self.stop.request_stop(); });
    return self.stream->next();
  });
  if (!tensor) return nb::none();
  return nb::make_tuple(tensor->index, OwnedBytes{tensor->bytes, std::move(tensor->memory)});
}

}  // namespace

void bind_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def_static("open", open_stream, nb::arg("file"), nb::arg("tensors"), nb::arg("order"),
                  nb::arg("threads"), nb::arg("memory_bytes").none())
      .def("next", next);
}

}  // namespace thalia::python
