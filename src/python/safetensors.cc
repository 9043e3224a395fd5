// safetensors files as Python maps them. What an array looks at keeps its file's mapping, so that a
// file may be closed while its tensors are used.
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

struct Opened {
  SafetensorsFile file;
  bool writable;  ///< its bytes; in memory alone
};

Opened open_safetensors(const Path& path, const std::string& access) {
  const ReadOptions options = read_options(access, "off", 0);
  const Unlocked unlocked;
  return {SafetensorsFile::open_header(path, options), options.input.access == Access::writable};
}

// In the order of the file: (name, dtype, shape, payload) each.
ListOf<std::string> names_of(const Opened& opened) {
  nb::list out;
  for (const NamedArray& tensor : opened.file.tensors()) out.append(tensor.name);
  return out;
}

// Where it lies in the file, and the rest of FlatSource.
TupleWith<std::uint64_t, std::string, std::string, Shape, Payload> tensor_of(const Opened& opened,
                                                                             std::size_t i) {
  const NamedArray& tensor = opened.file.tensors().at(i);
  // They lie at the end of the file, without gaps.
  const ByteSpan last = opened.file.tensors().back().bytes;
  const auto to_end = static_cast<std::uint64_t>(last.data() + last.size() - tensor.bytes.data());
  return nb::make_tuple(opened.file.file_bytes() - to_end, tensor.name, dtype_name(tensor.dtype),
                        tensor.shape, Payload(tensor.bytes, opened.file, opened.writable));
}

void touch(const Opened& opened, std::size_t i) {
  const Unlocked unlocked;
  opened.file.touch(opened.file.tensors().at(i).bytes);
}

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

// The one rule of which file a folder is opened by, and the one reader of indexes.
struct OpenedIndex {
  Path path;
  ModelIndex index;
};

OpenedIndex read_index(const Path& path) {
  const Unlocked unlocked;
  return {path, read_model_index(path)};
}

// The place of each tensor's file among the files, by the tensor's name, in the order of the index.
nb::typed<nb::dict, std::string, std::size_t> places_of(const OpenedIndex& opened) {
  nb::dict out;
  for (const IndexedTensor& tensor : opened.index.tensors)
    out[text_object(tensor.name)] = tensor.file;
  return out;
}

ListOf<std::string> files_of(const OpenedIndex& opened) {
  nb::list out;
  for (const std::string& file : opened.index.files) out.append(text_object(file));
  return out;
}

}  // namespace

void bind_model_index(nb::module_& module) {
  nb::class_<OpenedIndex>(module, "ModelIndex")
      .def_static("read", read_index, nb::arg("path"))
      .def_prop_ro("files", files_of)
      .def_prop_ro("places", places_of)
      .def_prop_ro("metadata_json", [](const OpenedIndex& opened) { return opened.index.metadata; })
      .def("check", [](const OpenedIndex& opened, std::size_t file,
                       const std::vector<std::string>& tensors) {
        check_model_file(opened.index, opened.path, file, tensors);
      });
  module.def("find_model", [](const Path& path) { return find_model(path); });
}

void bind_safetensors(nb::module_& module) {
  nb::class_<Opened>(module, "SafetensorsFile")
      .def_static("open", open_safetensors, nb::arg("path"), nb::arg("access"))
      .def_prop_ro("names", names_of)
      .def("tensor", tensor_of)
      .def("touch", touch,
           "Reads a tensor's bytes where they are copied. Before that they hold nothing.")
      .def_prop_ro("file_bytes", [](const Opened& opened) { return opened.file.file_bytes(); })
      .def_prop_ro("metadata", [](const Opened& opened) -> std::optional<Named> {
        if (!opened.file.has_metadata()) return std::nullopt;
        return opened.file.metadata();
      });
  module.def("save_safetensors", save, nb::arg("path"), nb::arg("tensors"),
             nb::arg("metadata").none(), nb::arg("options"));
  module.def("serialize_safetensors", serialize, nb::arg("tensors"), nb::arg("metadata").none());
  module.def("edit_safetensors_metadata", edit_metadata, nb::arg("path"), nb::arg("changes"),
             nb::arg("in_place"), nb::arg("options"));
}

}  // namespace thalia::python
