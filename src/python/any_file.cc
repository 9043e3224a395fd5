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

#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/sparse_arrays.h"
#include "python/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

OpenedAny open_any_file(const Path& path, const std::string& access, unsigned threads,
                        std::vector<Path> search, bool dequantize, bool legacy) {
  OpenOptions options{.read = read_options(access, "off", threads),
                      .search = std::move(search),
                      .dequantize = dequantize};
  options.read.input.legacy = legacy;
  const bool writable = options.read.input.access == Access::writable;
  return interruptible([&](const std::stop_token& stop) {
    options.read.work.cancel = stop;
    return OpenedAny{open_any(path, options), writable};
  });
}

// In the order of the file: a dict each.
nb::list any_tensors(const OpenedAny& opened) {
  nb::list out;
  for (std::size_t i = 0; i < opened.file.tensors().size(); ++i) {
    const AnyTensor& tensor = opened.file.tensors()[i];
    nb::dict facts;
    facts["name"] = text_object(tensor.name);
    facts["dtype"] = dtype_name(tensor.layout.dtype);
    facts["shape"] = shape_tuple(tensor.layout.shape);
    facts["encoding"] = encoding_name(tensor.layout.encoding);
    facts["wide_indices"] = tensor.layout.wide_indices;
    facts["nbytes"] = opened.file.logical_bytes(i);
    facts["type"] = text_object(tensor.type);
    facts["offset"] = tensor.offset;
    facts["stored_bytes"] = tensor.stored_bytes;
    facts["in_place"] = tensor.in_place;
    out.append(facts);
  }
  return out;
}

Payload any_payload(const OpenedAny& opened, std::size_t i) {
  const nb::gil_scoped_release unlocked;
  Tensor tensor = opened.file.read(i);
  const ByteSpan bytes = tensor.bytes();
  return {bytes, std::move(tensor), opened.writable && opened.file.tensors()[i].in_place};
}

// Of its own, whatever the file shares with others: for what does not lie in it as it is.
OwnedBytes any_decoded(const OpenedAny& opened, std::size_t i) {
  const nb::gil_scoped_release unlocked;
  const auto tensor = std::make_shared<Tensor>(opened.file.read(i));
  return {tensor->mutable_bytes(), tensor};
}

std::vector<Payload> any_sparse(const OpenedAny& opened, std::size_t i) {
  const nb::gil_scoped_release unlocked;
  const auto tensor = std::make_shared<const Tensor>(opened.file.read(i));
  return arrays_of(tensor->encoding(), tensor, *tensor);
}

}  // namespace

void bind_any_file(nb::module_& module) {
  nb::class_<OpenedAny>(module, "AnyFile")
      .def_static("open", open_any_file, nb::arg("path"), nb::arg("access"), nb::arg("threads"),
                  nb::arg("search"), nb::arg("dequantize"), nb::arg("legacy"))
      .def_prop_ro("format", [](const OpenedAny& o) { return file_format_name(o.file.format()); })
      .def_prop_ro("version", [](const OpenedAny& o) { return text_object(o.file.version()); })
      .def_prop_ro("tensors", any_tensors)
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
