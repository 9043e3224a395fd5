// A writer borrows the bytes of Python's arrays until it has committed: it keeps each buffer, so
// that none can be resized or go meanwhile, and lets go of them with the GIL held.
#include "python/writer.h"
#include "python/gil.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "container/plan/check_options.h"
#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/text.h"
#include "thalia/types.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Extents = std::vector<std::uint64_t>;

TensorSpec spec_of(std::string name, const std::string& dtype, const Extents& extents,
                   const std::string& role) {
  return {.name = std::move(name),
          .dtype = dtype_of(dtype),
          .shape = Shape(std::span<const std::uint64_t>(extents)),
          .role = role_of(role)};
}

std::uint32_t add_region(PyWriter& self, std::string name, std::uint32_t n_neurons,
                         std::uint32_t n_inputs, const std::string& neuron_type,
                         std::string config_json, std::string metadata_json,
                         std::uint64_t homeostatic_updated) {
  return self.use()
      ->get()
      .add_region({.name = std::move(name),
                   .config_json = std::move(config_json),
                   .metadata_json = std::move(metadata_json),
                   .n_neurons = n_neurons,
                   .n_inputs = n_inputs,
                   .neuron_type = neuron_type_of(neuron_type),
                   .homeostatic_updated = homeostatic_updated})
      .value;
}

void add_tensor(PyWriter& self, std::uint32_t region, std::string name, const std::string& dtype,
                const Extents& shape, const std::string& role, nb::handle data) {
  const auto use = self.use();
  HeldBuffer held(data, HeldBuffer::Use::read);
  use->get().add_tensor(RegionId{region}, spec_of(std::move(name), dtype, shape, role),
                        held.bytes());
  use->held.push_back(std::move(held));
}

// Each (name, dtype, shape, buffer), in the region that its name says. `regions`: numbers by
// names, to which new ones are added. `roles`: by name, if that does not tell.
void add_tensors(PyWriter& self, const ListOf<nb::any>& tensors,
                 const nb::typed<nb::dict, std::string, std::uint32_t>& regions,
                 const nb::typed<nb::dict, std::string, std::string>& roles) {
  const auto use = self.use();
  Writer& writer = use->get();
  std::string region;
  std::optional<RegionId> last;
  for (const nb::handle item : tensors) {
    const auto tensor = nb::cast<nb::tuple>(item);
    auto name = nb::cast<std::string>(tensor[0]);
    const auto shape = nb::cast<Extents>(tensor[2]);
    // Those of a region mostly follow each other.
    if (std::string own = region_for_name(name, RegionGrouping{}); !last || own != region) {
      region = std::move(own);
      const nb::str key(region.data(), region.size());
      if (!regions.contains(key))
        regions[key] = writer.add_region({.name = region, .config_json = "{}"}).value;
      last = RegionId{nb::cast<std::uint32_t>(regions[key])};
    }
    const Role role = roles.contains(tensor[0])
                          ? role_of(nb::cast<std::string>(roles[tensor[0]]))
                          : role_of_name(name, static_cast<unsigned>(shape.size()));
    HeldBuffer held(tensor[3], HeldBuffer::Use::read);
    writer.add_tensor(*last,
                      {.name = std::move(name),
                       .dtype = dtype_of(nb::cast<std::string>(tensor[1])),
                       .shape = Shape(std::span<const std::uint64_t>(shape)),
                       .role = role},
                      held.bytes());
    use->held.push_back(std::move(held));
  }
}

template <typename Index>
std::span<const Index> array_of(const HeldBuffer& held) {
  return {reinterpret_cast<const Index*>(held.bytes().data()), held.bytes().size() / sizeof(Index)};
}

// `pointers` is None for coo. Index arrays are u32 or, where `wide`, u64.
void add_sparse(PyWriter& self, std::uint32_t region, std::string name, const std::string& dtype,
                const Extents& shape, const std::string& role, bool wide, nb::handle pointers,
                nb::handle indices, nb::handle values) {
  const auto use = self.use();
  TensorSpec spec = spec_of(std::move(name), dtype, shape, role);
  std::vector<HeldBuffer> held;
  held.emplace_back(indices, HeldBuffer::Use::read);
  held.emplace_back(values, HeldBuffer::Use::read);
  const ByteSpan elements = held[1].bytes();
  const auto add = [&]<typename Index>(Index) {
    if (pointers.is_none()) {
      use->get().add_coo(RegionId{region}, std::move(spec),
                         CooArrays<Index>{array_of<Index>(held[0]), elements});
      return;
    }
    held.emplace_back(pointers, HeldBuffer::Use::read);
    use->get().add_csr(
        RegionId{region}, std::move(spec),
        CsrArrays<Index>{array_of<Index>(held[2]), array_of<Index>(held[0]), elements});
  };
  wide ? add(std::uint64_t{}) : add(std::uint32_t{});
  for (HeldBuffer& buffer : held) use->held.push_back(std::move(buffer));
}

void add_connection(PyWriter& self, const std::string& source, const std::string& target,
                    const std::string& dtype, const Extents& shape, nb::handle weights,
                    const std::string& delay_dtype, const Extents& delay_shape, nb::handle delays) {
  const auto use = self.use();
  Writer& writer = use->get();
  const ConnectionId connection = writer.add_connection(source, target);
  HeldBuffer held(weights, HeldBuffer::Use::read);
  writer.add_connection_weights(connection, spec_of({}, dtype, shape, "weights"), held.bytes());
  use->held.push_back(std::move(held));
  if (delays.is_none()) return;
  HeldBuffer held_delays(delays, HeldBuffer::Use::read);
  writer.add_connection_delays(connection, spec_of({}, delay_dtype, delay_shape, "weights"),
                               held_delays.bytes());
  use->held.push_back(std::move(held_delays));
}

SaveResult commit(PyWriter& self) {
  const auto use = self.use();
  Writer& writer = use->get();
  const auto save = [&](const std::stop_token& stop) {
    const std::stop_callback forward(stop, [&] { use->stop.request_stop(); });
    return writer.commit();
  };
  SaveResult result = use->is_soon_over() ? interruptible_here(save) : interruptible(save);
  use->let_go();
  return result;
}

std::optional<std::string> fallback_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

void bind_save_result(nb::module_& module) {
  bind_result<SaveResult>(
      module, "SaveResult", "What a save did.", field("file_bytes", &SaveResult::file_bytes),
      field("payload_bytes", &SaveResult::payload_bytes, "Bytes of all tensors, uncompressed."),
      field("regions", &SaveResult::regions), field("tensors", &SaveResult::tensors),
      field("seconds", &SaveResult::seconds),
      field("sync_seconds", &SaveResult::sync_seconds,
            "The part of `seconds` spent waiting for the disk."),
      field("codec", &SaveResult::codec),
      field("io", &SaveResult::io, "\"buffered\" or \"direct\"."),
      field("io_fallback", &SaveResult::io_fallback, "Why it is not what was asked for.",
            fallback_of),
      field("sha256", &SaveResult::sha256),
      field("closing_checksum", &SaveResult::closing_checksum,
            "The file's identity, in hexadecimal."));
}

}  // namespace

OpenWriter::OpenWriter(SaveOptions options, const std::function<Writer(const SaveOptions&)>& made) {
  options.work.cancel = stop.get_token();
  calls_back = bool(options.work.progress);
  const Unlocked unlocked;
  writer.emplace(made(options));
}

OpenWriter::OpenWriter(const Path& path, SaveOptions options)
    : OpenWriter(std::move(options), [&](const SaveOptions& own) { return Writer(path, own); }) {}

OpenWriter::OpenWriter(int descriptor, SaveOptions options)
    : OpenWriter(std::move(options), [&](const SaveOptions& own) {
        return Writer(descriptor, "descriptor " + std::to_string(descriptor), own);
      }) {}

Writer& OpenWriter::get() {
  process.require("the writer");
  if (writer) return *writer;
  throw UsageError(ErrorCode::wrong_state, "the writer was committed or abandoned already");
}

bool OpenWriter::is_soon_over() const noexcept {
  std::uint64_t bytes = 0;
  for (const HeldBuffer& buffer : held) bytes += buffer.bytes().size();
  return !calls_back && bytes <= kSoonOver;
}

void OpenWriter::let_go() {
  writer.reset();
  // To let go of a buffer may run Python: out of the list first.
  const std::vector<HeldBuffer> gone = std::exchange(held, {});
}

void bind_writer(nb::module_& module) {
  bind_save_result(module);
  module.def(
      "check_save_options",
      [](const Members& options) { container::check_options(save_options(options)); },
      nb::arg("options"));
  nb::class_<PyWriter>(module, "Writer")
      .def("__init__",
           [](PyWriter* self, const Path& path, const Members& options) {
             new (self) PyWriter("the writer", path, save_options(options));
           })
      .def("__init__",
           [](PyWriter* self, int descriptor, const Members& options) {
             new (self) PyWriter("the writer", descriptor, save_options(options));
           })
      .def(
          "set_metadata",
          [](PyWriter& self, std::string json) { self.use()->get().set_metadata(std::move(json)); })
      .def("set_training_steps",
           [](PyWriter& self, std::uint64_t steps) { self.use()->get().set_training_steps(steps); })
      .def("add_region", add_region, nb::arg("name"), nb::arg("n_neurons"), nb::arg("n_inputs"),
           nb::arg("neuron_type"), nb::arg("config_json"), nb::arg("metadata_json"),
           nb::arg("homeostatic_updated"))
      .def("add_tensor", add_tensor, nb::arg("region"), nb::arg("name"), nb::arg("dtype"),
           nb::arg("shape"), nb::arg("role"), nb::arg("data"))
      .def("add_tensors", add_tensors, nb::arg("tensors"), nb::arg("regions"), nb::arg("roles"))
      .def("add_sparse", add_sparse, nb::arg("region"), nb::arg("name"), nb::arg("dtype"),
           nb::arg("shape"), nb::arg("role"), nb::arg("wide"), nb::arg("pointers").none(),
           nb::arg("indices"), nb::arg("values"))
      .def("add_connection", add_connection, nb::arg("source"), nb::arg("target"), nb::arg("dtype"),
           nb::arg("shape"), nb::arg("weights"), nb::arg("delay_dtype"), nb::arg("delay_shape"),
           nb::arg("delays").none())
      .def("commit", commit)
      .def("abandon", [](PyWriter& self) { self.use()->let_go(); })
      .def_prop_ro("is_open", [](PyWriter& self) { return self.use()->writer.has_value(); });
}

}  // namespace thalia::python
