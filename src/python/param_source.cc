// Tensors of files of every format on demand, a part of them kept.
#include "thalia/formats/param_source.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "convert/formats.h"
#include "io/memory/allocation_limit.h"
#include "python/bindings.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/file.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"
#include "python/sparse_arrays.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"

namespace thalia::python {
namespace {

// An open file of any format, as Python has it.
//
// Files of formats without regions, whichever they are.

struct OpenedAny {
  AnyFile file;
  bool writable;  ///< what lies in the mapping; in memory alone
};

namespace nb = nanobind;
using Path = std::filesystem::path;

OpenOptions open_options(const std::string& access, const std::string& verification,
                         unsigned threads, std::vector<Path> search, bool dequantize, bool legacy,
                         bool shared_memory) {
  OpenOptions options{
      .chain = {.read = read_options(access, verification, threads), .search = std::move(search)},
      .dequantize = dequantize,
      .shared_memory = shared_memory};
  options.chain.read.input.legacy = legacy;
  return options;
}

bool is_writable(const OpenOptions& options) {
  return options.chain.read.input.access == Access::writable;
}

OpenedAny open_any_file(const Path& path, const std::string& access,
                        const std::string& verification, unsigned threads, std::vector<Path> search,
                        bool dequantize, bool legacy, bool shared_memory) {
  OpenOptions options = open_options(access, verification, threads, std::move(search), dequantize,
                                     legacy, shared_memory);
  return interruptible([&](const std::stop_token& stop) {
    options.chain.read.work.cancel = stop;
    return OpenedAny{open_any(path, options), is_writable(options)};
  });
}

// A file of any format, opened once: to see what it is, and then to read it.
std::variant<File, OpenedAny> open_one(const Path& path, const std::string& access,
                                       const std::string& verification, unsigned threads,
                                       std::vector<Path> search, bool dequantize, bool legacy,
                                       bool shared_memory) {
  OpenOptions options = open_options(access, verification, threads, std::move(search), dequantize,
                                     legacy, shared_memory);
  const auto open = [&](const std::stop_token& stop) -> std::variant<File, OpenedAny> {
    options.chain.read.work.cancel = stop;
    auto opened = formats::open_as_found(path, options);
    if (auto* const file = std::get_if<AnyFile>(&opened))
      return OpenedAny{std::move(*file), is_writable(options)};
    return thalia_file(std::get<Reader>(std::move(opened)), options.chain);
  };
  const bool is_small = is_file(path) && file_bytes(path) <= kSoonOver;
  return is_small ? interruptible_here(open) : interruptible(open);
}

// In the order of the file. All else is found out about a tensor when somebody asks: there may be
// very many.
ListOf<std::string> any_names(const OpenedAny& opened) {
  nb::list out;
  for (const AnyTensor& tensor : opened.file.tensors()) out.append(text_object(tensor.name));
  return out;
}

// The types of tensors that have a type of the format's own.
nb::typed<nb::dict, std::string, std::string> any_types(const OpenedAny& opened) {
  nb::dict out;
  for (const AnyTensor& tensor : opened.file.tensors())
    if (!tensor.type.empty()) out[text_object(tensor.name)] = text_object(tensor.type);
  return out;
}

Members any_tensor(const OpenedAny& opened, std::size_t i) {
  const AnyTensor& tensor = opened.file.tensors().at(i);
  nb::dict facts;
  facts["name"] = text_object(tensor.name);
  facts["dtype"] = dtype_name(tensor.layout.dtype);
  facts["shape"] = tensor.layout.shape;
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

void any_read(const OpenedAny& opened, std::size_t i, nb::handle out) {
  const HeldBuffer buffer(out, HeldBuffer::Use::write);
  const Unlocked unlocked;
  const Tensor tensor = opened.file.read(i);
  const MutableByteSpan into = buffer.writable();
  if (into.size() != tensor.bytes().size()) {
    throw UsageError(ErrorCode::size_mismatch, {},
                     {.field = "out",
                      .value = std::to_string(into.size()),
                      .bound = std::to_string(tensor.bytes().size())});
  }
  if (!into.empty()) std::memcpy(into.data(), tensor.bytes().data(), into.size());
}

// Memory of its own, whatever the file shares with others: for what does not lie in it as it is.
OwnedBytes any_decoded(const OpenedAny& opened, std::size_t i) {
  const Unlocked unlocked;
  const auto tensor = std::make_shared<Tensor>(opened.file.read(i));
  // A file that is decoded as a whole keeps what it hands out: the copy is in memory with it.
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

/// An id from its 32 hexadecimal digits.
template <typename Id>
Id id_of(const char* argument, const std::string& text) {
  if (const auto id = Id::from_string(text)) return *id;
  fail_choice(argument, text, "32 lower-case hexadecimal digits");
}

ParamSource open_params(const OpenedAny& opened, std::optional<std::uint64_t> budget_bytes,
                        std::optional<double> budget_share,
                        std::optional<std::uint64_t> budget_cap_bytes,
                        std::uint64_t prefetch_layers, std::optional<std::uint64_t> small_bytes,
                        const std::optional<std::string>& model) {
  std::optional<ModelNamespaceId> space;
  if (model) space = id_of<ModelNamespaceId>("model", *model);
  const Unlocked unlocked;
  return stream_params(opened.file, {.budget_bytes = budget_bytes,
                                     .budget_share = budget_share,
                                     .budget_cap_bytes = budget_cap_bytes,
                                     .prefetch_layers = prefetch_layers,
                                     .small_bytes = small_bytes,
                                     .model = space});
}

std::optional<ParamInfo> find_param(const ParamSource& source, const std::optional<std::string>& id,
                                    const std::optional<std::string>& key) {
  const ParamInfo* const found = id ? source.find(id_of<BaseParamId>("id", *id))
                                    : source.find(id_of<ParamKey>("key", key.value()));
  return found == nullptr ? std::nullopt : std::optional(*found);
}

// What Python derived, which may let go of it anywhere.
using Derived = std::shared_ptr<nb::object>;

nb::object resolve(const ParamResolver& resolver, const std::string& key, const std::string& form,
                   const nb::callable& make) {
  const auto id = id_of<ParamKey>("key", key);
  std::shared_ptr<const Derived> found;
  {
    const Unlocked unlocked;
    found = resolver.resolve<Derived>(id, form, [&] {
      Derived made;
      with_gil([&] { made = held_object(make()); });
      return made;
    });
  }
  return **found;
}

// Its bytes, or of a sparse one its arrays.
std::vector<Payload> load(const ParamSource& source, const std::string& name) {
  const Unlocked unlocked;
  const auto tensor = std::make_shared<const Tensor>(source.load(name));
  if (tensor->is_dense()) return {Payload(tensor->bytes(), tensor)};
  return arrays_of(tensor->encoding(), tensor, *tensor);
}

void prefetch(const ParamSource& source, unsigned threads) {
  interruptible(
      [&](const std::stop_token& stop) { source.prefetch({.threads = threads, .cancel = stop}); });
}

void bind_param_facts(nb::module_& module) {
  bind_result<ParamInfo>(
      module, "ParamInfo", "What a ParamSource says of a tensor.", field("name", &ParamInfo::name),
      field(
          "dtype", [](auto& param) -> auto& { return param.layout.dtype; }),
      field(
          "shape", [](auto& param) -> auto& { return param.layout.shape; }),
      field(
          "encoding", [](auto& param) -> auto& { return param.layout.encoding; }),
      field("nbytes", &ParamInfo::bytes),
      field(
          "id", &ParamInfo::id,
          "As gpt.rs has it: 32 hexadecimal digits that follow from the name; None of one that is "
          "not ASCII."),
      field("key", &ParamInfo::key,
            "The id within the source's model: what caches of several models may use."),
      field("layer", &ParamInfo::layer,
            "The first part of the name, cut at \".\", that is a number and not the last part."),
      field("pinned", &ParamInfo::pinned,
            "It stays once it was loaded, where the budget has room."),
      field(
          "wide_indices", [](auto& param) -> auto& { return param.layout.wide_indices; },
          "Indices of csr and coo are of 64 bits."),
      field("stored_bytes", &ParamInfo::stored_bytes, "Bytes of the file that it is made of."));
  bind_result<ParamStatistics>(
      module, "ParamStatistics", "What a ParamSource did so far, and what it keeps.",
      field("hits", &ParamStatistics::hits,
            "Loads that read nothing: of what was kept, or was being read for another."),
      field("misses", &ParamStatistics::misses),
      field("loaded_bytes", &ParamStatistics::loaded_bytes),
      field("evictions", &ParamStatistics::evictions, "Tensors that went to make room."),
      field("resident_tensors", &ParamStatistics::resident_tensors),
      field("resident_bytes", &ParamStatistics::resident_bytes, "Kept now; at most the budget."),
      field("pinned_bytes", &ParamStatistics::pinned_bytes,
            "The part of `resident_bytes` that is pinned."));
}

}  // namespace

void bind_any_file(nb::module_& module) {
  module.def("open_one", open_one, nb::arg("path"), nb::arg("access"), nb::arg("verification"),
             nb::arg("threads"), nb::arg("search"), nb::arg("dequantize"), nb::arg("legacy"),
             nb::arg("shared_memory"));
  nb::class_<OpenedAny>(module, "AnyFile")
      .def_static("open", open_any_file, nb::arg("path"), nb::arg("access"),
                  nb::arg("verification"), nb::arg("threads"), nb::arg("search"),
                  nb::arg("dequantize"), nb::arg("legacy"), nb::arg("shared_memory"))
      .def_prop_ro("format", [](const OpenedAny& o) { return file_format_name(o.file.format()); })
      .def_prop_ro("version", [](const OpenedAny& o) { return o.file.version(); })
      .def_prop_ro("names", any_names)
      .def_prop_ro("types", any_types)
      .def("tensor", any_tensor)
      .def_prop_ro("metadata_json", [](const OpenedAny& o) { return o.file.metadata_json(); })
      .def_prop_ro("training_steps", [](const OpenedAny& o) { return o.file.training_steps(); })
      .def_prop_ro("file_bytes", [](const OpenedAny& o) { return o.file.file_bytes(); })
      .def_prop_ro("files", [](const OpenedAny& o) { return o.file.files(); })
      .def_prop_ro("losses", [](const OpenedAny& o) { return text_list(o.file.losses()); })
      .def("payload", any_payload)
      .def("read", any_read)
      .def("decoded", any_decoded)
      .def("sparse", any_sparse);
}

void bind_param_source(nb::module_& module) {
  bind_param_facts(module);
  nb::class_<ParamSource>(module, "ParamSource")
      .def_static("open", open_params, nb::arg("file"), nb::arg("budget_bytes").none(),
                  nb::arg("budget_share").none(), nb::arg("budget_cap_bytes").none(),
                  nb::arg("prefetch_layers"), nb::arg("small_bytes").none(),
                  nb::arg("model").none())
      .def_prop_ro("params",
                   [](const ParamSource& source) { return TupleOf<ParamInfo>{source.params()}; })
      .def_prop_ro("total_bytes", &ParamSource::total_bytes)
      .def_prop_ro("budget_bytes", &ParamSource::budget_bytes)
      .def_prop_ro("model", &ParamSource::model)
      .def("find", find_param, nb::arg("id").none(), nb::arg("key").none())
      .def("load", load, nb::arg("name"))
      .def("prefetch", prefetch, nb::arg("threads"))
      .def_prop_ro("statistics", &ParamSource::statistics);
  nb::class_<ParamResolver>(module, "ParamResolver")
      .def(nb::init<>())
      .def("resolve", resolve,
           nb::sig("def resolve(self, key: str, form: str, make: collections.abc.Callable[[], "
                   "object]) -> object"))
      .def("size",
           [](const ParamResolver& resolver) {
             const Unlocked unlocked;
             return resolver.size();
           })
      .def(
          "forget",
          [](const ParamResolver& resolver, const std::string& key) {
            const auto id = id_of<ParamKey>("key", key);
            const Unlocked unlocked;
            return resolver.forget(id);
          },
          nb::arg("key"))
      .def("clear", [](const ParamResolver& resolver) {
        const Unlocked unlocked;
        return resolver.clear();
      });
  module.def(
      "base_param_id", [](const std::string& name) { return base_param_id(name); },
      nb::arg("name"));
  module.def(
      "param_key",
      [](const std::string& model, const std::string& id) {
        return param_key(id_of<ModelNamespaceId>("model", model), id_of<BaseParamId>("id", id));
      },
      nb::arg("model"), nb::arg("id"));
}

}  // namespace thalia::python
