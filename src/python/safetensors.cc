// safetensors files that Python writes. It reads them as files of any other format.
#include "thalia/formats/safetensors.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/casters.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Named = std::vector<std::pair<std::string, std::string>>;

// (name, dtype, shape, buffer) each. `held` keeps the buffers.
std::vector<NamedArray> specs_of(const nb::list& tensors, std::vector<HeldBuffer>& held) {
  std::vector<NamedArray> specs;
  held.reserve(tensors.size());
  for (const nb::handle item : tensors) {
    const auto tensor = nb::cast<nb::tuple>(item);
    held.emplace_back(tensor[3], HeldBuffer::Use::read);
    const auto extents = nb::cast<std::vector<std::uint64_t>>(tensor[2]);
    specs.push_back({.name = nb::cast<std::string>(tensor[0]),
                     .dtype = dtype_of(nb::cast<std::string>(tensor[1])),
                     .shape = Shape(std::span<const std::uint64_t>(extents)),
                     .bytes = held.back().bytes()});
  }
  return specs;
}

// Returns how many bytes the file has.
std::uint64_t save(const Path& path, const ListOf<nb::any>& tensors, std::optional<Named> metadata,
                   const Members& options) {
  std::vector<HeldBuffer> held;
  std::vector<NamedArray> specs = specs_of(tensors, held);
  const OutputOptions output = save_options(options).output;
  return interruptible([&](const std::stop_token&) {
    return save_safetensors(path, std::move(specs), metadata, output);
  });
}

// The bytes that save() would write.
nb::bytes serialize(const ListOf<nb::any>& tensors, const std::optional<Named>& metadata) {
  std::vector<HeldBuffer> held;
  nb::object bytes;
  std::optional<Unlocked> unlocked;
  serialize_safetensors(specs_of(tensors, held), metadata, [&](std::uint64_t size) {
    bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!bytes.is_valid()) throw nb::python_error();
    char* const begin = PyBytes_AsString(bytes.ptr());
    unlocked.emplace();
    return std::as_writable_bytes(std::span(begin, size));
  });
  unlocked.reset();
  return nb::borrow<nb::bytes>(bytes);
}

// A text under a key, or None to remove it, each. Tells how it was done.
const char* edit_metadata(
    const Path& path,
    const std::vector<std::pair<std::string, std::optional<std::string>>>& changes, bool in_place,
    const Members& options) {
  SafetensorsEditOptions edit{.in_place = in_place, .output = save_options(options).output};
  const SafetensorsEdit how = interruptible([&](const std::stop_token& stop) {
    edit.work.cancel = stop;
    return edit_safetensors_metadata(path, changes, edit);
  });
  switch (how) {
    case SafetensorsEdit::unchanged:
      return "unchanged";
    case SafetensorsEdit::cloned:
      return "cloned";
    case SafetensorsEdit::in_place:
      return "in_place";
    case SafetensorsEdit::rewritten:
      break;
  }
  return "rewritten";
}

}  // namespace

void bind_safetensors(nb::module_& module) {
  module.def("save_safetensors", save, nb::arg("path"), nb::arg("tensors"),
             nb::arg("metadata").none(), nb::arg("options"));
  module.def("serialize_safetensors", serialize, nb::arg("tensors"), nb::arg("metadata").none());
  module.def("edit_safetensors_metadata", edit_metadata, nb::arg("path"), nb::arg("changes"),
             nb::arg("in_place"), nb::arg("options"));
}

}  // namespace thalia::python
