// The one rule of which file a folder is opened by, and the one reader of indexes.
#include "thalia/formats/safetensors.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

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

}  // namespace thalia::python
