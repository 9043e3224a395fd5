// Files and their tensors. A delta's tensors are those of the state that it stands for: they are
// read through its chain.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "container/file/short_name.h"
#include "io/memory/allocation_limit.h"
#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/casters.h"
#include "python/file.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/sparse_arrays.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

struct Region {
  File file;
  RegionView view;
};

std::vector<SliceRange> ranges_of(
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs) {
  std::vector<SliceRange> ranges;
  for (const auto& [begin, end] : pairs) ranges.push_back({begin, end});
  return ranges;
}

void read_slice(const FileTensor& tensor,
                const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs, nb::handle out) {
  const std::vector<SliceRange> ranges = ranges_of(pairs);
  const HeldBuffer buffer(out, HeldBuffer::Use::write);
  const Unlocked unlocked;
  tensor.view.read_slice(ranges, buffer.writable());
}

void read_whole(const FileTensor& tensor, nb::handle out) {
  const HeldBuffer buffer(out, HeldBuffer::Use::write);
  const Unlocked unlocked;
  tensor.read(buffer.writable());
}

// Bytes [begin, begin + len(out)) of what read() gives.
void read_part(const FileTensor& tensor, std::uint64_t begin, nb::handle out) {
  const HeldBuffer buffer(out, HeldBuffer::Use::write);
  const Unlocked unlocked;
  if (!tensor.chain) {
    throw UsageError(ErrorCode::wrong_state, {},
                     {.field = "tensor", .value = "no delta's", .bound = "one of a delta"});
  }
  tensor.chain->read_part(tensor.view, begin, buffer.writable());
}

Payload payload(const FileTensor& tensor) {
  const Unlocked unlocked;
  return {tensor.view.bytes(), tensor.view, tensor.writable};
}

Payload rows(const FileTensor& tensor, std::uint64_t begin, std::uint64_t end) {
  const Unlocked unlocked;
  return {tensor.view.rows(begin, end), tensor.view, tensor.writable};
}

std::vector<Payload> sparse(const FileTensor& tensor) {
  const Unlocked unlocked;
  const Encoding encoding = tensor.layout.encoding;
  if (tensor.is_mapped()) return arrays_of(encoding, tensor.view, tensor.view);
  if (tensor.chain) {
    const auto whole = std::make_shared<const Tensor>(tensor.chain->read(tensor.view));
    return arrays_of(encoding, whole, *whole);
  }
  const std::uint64_t bytes = tensor.view.logical_bytes();
  io::MemoryBudget budget({}, tensor.view.stored_bytes());
  const auto words = std::make_shared<std::vector<std::uint64_t>>(
      budget.vector<std::uint64_t>("payload", bytes / 8 + 1));
  return arrays_of(encoding, words, tensor.view,
                   std::as_writable_bytes(std::span(*words)).first(bytes));
}

std::vector<std::string> codec_names(const FileTensor& tensor) {
  std::vector<std::string> names;
  for (const Codec codec : tensor.view.codecs()) names.emplace_back(codec_name(codec));
  return names;
}

Members header_facts(const File& file) {
  const FileHeader header = file.reader.header();
  nb::dict facts;
  facts["timestamp"] = header.timestamp;
  facts["total_neurons"] = header.total_neurons;
  facts["total_synapses"] = header.total_synapses;
  facts["training_steps"] = header.training_steps;
  facts["generation"] = header.generation;
  facts["file_uuid"] = hex(header.file_uuid);
  return facts;
}

void bind_tensor(nb::module_& module) {
  nb::class_<FileTensor>(module, "FileTensor")
      .def_prop_ro("name", [](const FileTensor& t) { return std::string(t.view.name()); })
      .def_prop_ro("region",
                   [](const FileTensor& t) { return std::string(Reader::region_name(t.view)); })
      .def_prop_ro("role", [](const FileTensor& t) { return role_name(t.view.role()); })
      .def_prop_ro("dtype", [](const FileTensor& t) { return dtype_name(t.layout.dtype); })
      .def_prop_ro("shape", [](const FileTensor& t) { return t.layout.shape; })
      .def_prop_ro("encoding", [](const FileTensor& t) { return encoding_name(t.layout.encoding); })
      .def_prop_ro("wide_indices", [](const FileTensor& t) { return t.layout.wide_indices; })
      .def_prop_ro("nbytes", &FileTensor::read_bytes)
      .def_prop_ro("stored_bytes", [](const FileTensor& t) { return t.view.stored_bytes(); })
      .def_prop_ro("offset", [](const FileTensor& t) { return t.view.stored_offset(); })
      .def_prop_ro("codecs", codec_names)
      .def_prop_ro("is_mapped", &FileTensor::is_mapped)
      .def_prop_ro("disk_bytes",
                   [](const FileTensor& t) {
                     return t.chain != nullptr ? t.chain->disk_bytes() : t.view.stored_bytes();
                   })
      .def_prop_ro("of_delta", [](const FileTensor& t) { return t.chain != nullptr; })
      .def_prop_ro("is_quantized", &FileTensor::is_quantized)
      .def("payload", payload)
      .def("rows", rows)
      .def("read", read_whole)
      .def("read_slice", read_slice)
      .def("read_part", read_part)
      .def("sparse", sparse);
}

void bind_region(nb::module_& module) {
  nb::class_<Region>(module, "FileRegion")
      .def_prop_ro("name", [](const Region& r) { return std::string(r.view.name()); })
      .def_prop_ro("n_neurons", [](const Region& r) { return r.view.n_neurons(); })
      .def_prop_ro("n_inputs", [](const Region& r) { return r.view.n_inputs(); })
      .def_prop_ro("neuron_type",
                   [](const Region& r) { return neuron_type_name(r.view.neuron_type()); })
      .def_prop_ro("homeostatic_updated",
                   [](const Region& r) { return r.view.homeostatic_updated().value_or(0); })
      .def_prop_ro("config_json", [](const Region& r) { return std::string(r.view.config_json()); })
      .def_prop_ro("metadata_json",
                   [](const Region& r) { return std::string(r.view.metadata_json()); })
      .def("__len__", [](const Region& r) { return r.view.tensor_count(); })
      .def("tensor",
           [](const Region& r, std::uint32_t i) { return r.file.tensor(r.view.tensor(i)); })
      .def("find",
           [](const Region& r, const std::string& name) -> std::optional<FileTensor> {
             if (auto view = r.view.find(name)) return r.file.tensor(*view);
             return std::nullopt;
           })
      .def("prefetch", [](const Region& r) { r.view.prefetch(); })
      .def(
          "populate", [](const Region& r) { r.view.populate(); }, nb::call_guard<Unlocked>())
      .def("release", [](const Region& r) { r.view.release(); });
}

// (source, target, weights, delays or None) each. A file has short names there.
ListOf<TupleWith<std::string, std::string, FileTensor, std::optional<FileTensor>>> connections_of(
    const File& file) {
  std::unordered_map<std::string, std::string_view> names;
  for (std::uint32_t i = 0; i < file.reader.region_count(); ++i) {
    const std::string_view name = file.reader.region(i).name();
    names.emplace(container::short_name_string(name), name);
  }
  const auto full = [&](const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? name : std::string(found->second);
  };
  nb::list out;
  for (std::uint32_t i = 0; i < file.reader.connection_count(); ++i) {
    const ConnectionView connection = file.reader.connection(i);
    out.append(nb::make_tuple(
        full(connection.source), full(connection.target), file.tensor(connection.weights),
        connection.delays ? nb::cast(file.tensor(*connection.delays)) : nb::none()));
  }
  return out;
}

// The tensors of all regions, in the order of the file.
ListOf<FileTensor> tensors_of(const File& file) {
  nb::list out;
  for (std::uint32_t r = 0; r < file.reader.region_count(); ++r) {
    const RegionView region = file.reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
      out.append(file.tensor(region.tensor(i)));
  }
  return out;
}

}  // namespace

File thalia_file(Reader reader, const ChainOptions& options) {
  File file{.reader = std::move(reader), .writable = options.read.input.access == Access::writable};
  if (file.reader.delta_base())
    file.chain = std::make_shared<const ChainReader>(ChainReader::open(file.reader, options));
  return file;
}

void bind_reader(nb::module_& module) {
  bind_tensor(module);
  bind_region(module);
  nb::class_<File>(module, "File")
      .def_static(
          "open",
          [](const Path& path, const std::string& access, const std::string& verification,
             unsigned threads, std::vector<Path> search) {
            const ChainOptions options{.read = read_options(access, verification, threads),
                                       .search = std::move(search)};
            const Unlocked unlocked;
            return thalia_file(Reader::open(path, options.read), options);
          },
          nb::arg("path"), nb::arg("access"), nb::arg("verification"), nb::arg("threads"),
          nb::arg("search"))
      .def_prop_ro("path", [](const File& f) { return f.reader.path(); })
      .def_prop_ro("is_delta", [](const File& f) { return f.chain != nullptr; })
      .def_prop_ro("file_bytes", [](const File& f) { return f.reader.file_bytes(); })
      .def_prop_ro("header", header_facts)
      .def_prop_ro("metadata_json",
                   [](const File& f) { return std::string(f.reader.metadata_json()); })
      .def_prop_ro("tensor_count", [](const File& f) { return f.reader.tensor_count(); })
      .def("__len__", [](const File& f) { return f.reader.region_count(); })
      .def("region",
           [](const File& f, std::uint32_t i) {
             return Region{f, f.reader.region(i)};
           })
      .def("find_region",
           [](const File& f, const std::string& name) -> std::optional<Region> {
             if (auto view = f.reader.find_region(name)) return Region{f, *view};
             return std::nullopt;
           })
      .def("tensor",
           [](const File& f, const std::string& name) { return f.tensor(f.reader.tensor(name)); })
      .def_prop_ro("tensors", tensors_of)
      .def_prop_ro("connections", connections_of)
      .def_prop_ro(
          "has_block_tree",
          [](const File& f) { return f.reader.header().checksum == ChecksumType::block_tree; })
      .def("verify_all", [](const File& f) {
        interruptible([&](const std::stop_token& stop) { f.reader.verify_all(stop); });
      });
}

}  // namespace thalia::python
