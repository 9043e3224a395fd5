// Files of formats without regions, whichever they are.
#include "python/any_file.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "io/memory/allocation_limit.h"
#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/sparse_arrays.h"
#include "python/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

OpenedAny open_any_file(const Path& path, const std::string& access,
                        const std::string& verification, unsigned threads, std::vector<Path> search,
                        bool dequantize, bool legacy, bool shared_memory) {
  OpenOptions options{
      .chain = {.read = read_options(access, verification, threads), .search = std::move(search)},
      .dequantize = dequantize,
      .shared_memory = shared_memory};
  options.chain.read.input.legacy = legacy;
  const bool writable = options.chain.read.input.access == Access::writable;
  return interruptible([&](const std::stop_token& stop) {
    options.chain.read.work.cancel = stop;
    return OpenedAny{open_any(path, options), writable};
  });
}

// In the order of the file. All else is told of a tensor when somebody asks: there may be very
// many.
nb::list any_names(const OpenedAny& opened) {
  nb::list out;
  for (const AnyTensor& tensor : opened.file.tensors()) out.append(text_object(tensor.name));
  return out;
}

// Of tensors that have a type of the format's own.
nb::dict any_types(const OpenedAny& opened) {
  nb::dict out;
  for (const AnyTensor& tensor : opened.file.tensors())
    if (!tensor.type.empty()) out[text_object(tensor.name)] = text_object(tensor.type);
  return out;
}

nb::dict any_tensor(const OpenedAny& opened, std::size_t i) {
  const AnyTensor& tensor = opened.file.tensors().at(i);
  nb::dict facts;
  facts["name"] = text_object(tensor.name);
  facts["dtype"] = dtype_name(tensor.layout.dtype);
  facts["shape"] = shape_tuple(tensor.layout.shape);
  facts["encoding"] = encoding_name(tensor.layout.encoding);
  facts["wide_indices"] = tensor.layout.wide_indices;
  facts["nbytes"] = opened.file.logical_bytes(i);
  facts["offset"] = tensor.offset;
  facts["stored_bytes"] = tensor.stored_bytes;
  facts["in_place"] = tensor.in_place;
  return facts;
}

Payload any_payload(const OpenedAny& opened, std::size_t i) {
  const Unlocked unlocked;
  Tensor tensor = opened.file.read(i);
  const ByteSpan bytes = tensor.bytes();
  return {bytes, std::move(tensor), opened.writable && opened.file.tensors()[i].in_place};
}

// Of its own, whatever the file shares with others: for what does not lie in it as it is.
OwnedBytes any_decoded(const OpenedAny& opened, std::size_t i) {
  const Unlocked unlocked;
  const auto tensor = std::make_shared<Tensor>(opened.file.read(i));
  // A file that is decoded as a whole keeps what it hands out: the copy stands beside it.
  const std::uint64_t bytes = tensor->bytes().size();
  if (!opened.file.tensors()[i].stored_bytes)
    io::MemoryBudget({}, opened.file.file_bytes(), bytes).take("payload", bytes);
  return {tensor->mutable_bytes(), tensor};
}

std::vector<Payload> any_sparse(const OpenedAny& opened, std::size_t i) {
  const Unlocked unlocked;
  const auto tensor = std::make_shared<const Tensor>(opened.file.read(i));
  return arrays_of(tensor->encoding(), tensor, *tensor);
}

}  // namespace

void bind_any_file(nb::module_& module) {
  nb::class_<OpenedAny>(module, "AnyFile")
      .def_static("open", open_any_file, nb::arg("path"), nb::arg("access"),
                  nb::arg("verification"), nb::arg("threads"), nb::arg("search"),
                  nb::arg("dequantize"), nb::arg("legacy"), nb::arg("shared_memory"))
      .def_prop_ro("format", [](const OpenedAny& o) { return file_format_name(o.file.format()); })
      .def_prop_ro("version", [](const OpenedAny& o) { return text_object(o.file.version()); })
      .def_prop_ro("names", any_names)
      .def_prop_ro("types", any_types)
      .def("tensor", any_tensor)
      .def_prop_ro("metadata_json",
                   [](const OpenedAny& o) { return text_object(o.file.metadata_json()); })
      .def_prop_ro("training_steps", [](const OpenedAny& o) { return o.file.training_steps(); })
      .def_prop_ro("file_bytes", [](const OpenedAny& o) { return o.file.file_bytes(); })
      .def_prop_ro("losses", [](const OpenedAny& o) { return text_list(o.file.losses()); })
      .def("payload", any_payload)
      .def("decoded", any_decoded)
      .def("sparse", any_sparse);
}

}  // namespace thalia::python
