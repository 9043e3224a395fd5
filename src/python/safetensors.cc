// safetensors files that Python writes, and models of either kind of file. It reads them as files
// of any other format.
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

// An array from (name, dtype, shape), and maybe more.
NamedArray spec_of(const nb::tuple& tensor) {
  const auto extents = nb::cast<std::vector<std::uint64_t>>(tensor[2]);
  return {.name = nb::cast<std::string>(tensor[0]),
          .dtype = dtype_of(nb::cast<std::string>(tensor[1])),
          .shape = Shape(std::span<const std::uint64_t>(extents)),
          .bytes = {}};
}

// (name, dtype, shape, buffer) each. `held` keeps the buffers.
std::vector<NamedArray> specs_of(const nb::list& tensors, std::vector<HeldBuffer>& held) {
  std::vector<NamedArray> specs;
  held.reserve(tensors.size());
  for (const nb::handle item : tensors) {
    const auto tensor = nb::cast<nb::tuple>(item);
    held.emplace_back(tensor[3], HeldBuffer::Use::read);
    specs.push_back(spec_of(tensor));
    specs.back().bytes = held.back().bytes();
  }
  return specs;
}

// What a model gives for some of its tensors, as the stub of the module has it.
class PayloadsCallback : public nb::object {
 public:
  using nb::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name = nb::detail::const_name(
      "collections.abc.Callable[[list[int]], collections.abc.Sequence[object]]");
};

// The tensors are (name, dtype, shape) each; payloads(places) gives the buffers of those of a file,
// which are kept until that file is written.
void save_whole_model(const Path& path, const std::string& kind, const ListOf<nb::any>& tensors,
                      std::optional<Named> metadata, std::uint64_t max_shard_bytes,
                      const PayloadsCallback& payloads, const Members& options) {
  ModelSaveOptions model{
      .kind = chosen<ShardKind>(
          "format", kind, {{"thalia", ShardKind::thalia}, {"safetensors", ShardKind::safetensors}}),
      .max_shard_bytes = max_shard_bytes,
      .save = save_options(options)};
  std::vector<NamedArray> specs;
  for (const nb::handle tensor : tensors) specs.push_back(spec_of(nb::cast<nb::tuple>(tensor)));
  std::vector<HeldBuffer> held;
  model.payloads = [&](std::span<const std::size_t> places) {
    std::vector<ByteSpan> bytes;
    with_gil([&] {
      held.clear();
      nb::list wanted;
      for (const std::size_t place : places) wanted.append(place);
      for (const nb::handle buffer : payloads(wanted))
        bytes.push_back(held.emplace_back(buffer, HeldBuffer::Use::read).bytes());
    });
    return bytes;
  };
  interruptible([&](const std::stop_token& stop) {
    model.save.work.cancel = stop;
    save_model(path, specs, metadata, model);
  });
}

// Returns how many bytes the file has.
std::uint64_t save(const Path& path, const ListOf<nb::any>& tensors, std::optional<Named> metadata,
                   const Members& options) {
  std::vector<HeldBuffer> held;
  std::vector<NamedArray> specs = specs_of(tensors, held);
  const OutputOptions output = save_options(options).output;
  return interruptible_here([&](const std::stop_token&) {
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
  module.def("save_model", save_whole_model, nb::arg("path"), nb::arg("format"), nb::arg("tensors"),
             nb::arg("metadata").none(), nb::arg("max_shard_bytes"), nb::arg("payloads"),
             nb::arg("options"));
  module.def("serialize_safetensors", serialize, nb::arg("tensors"), nb::arg("metadata").none());
  module.def("edit_safetensors_metadata", edit_metadata, nb::arg("path"), nb::arg("changes"),
             nb::arg("in_place"), nb::arg("options"));
}

}  // namespace thalia::python
