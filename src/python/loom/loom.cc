// Files of Loom, and what its types do with numbers.
#include "thalia/formats/loom.h"

#include <cstring>
#include <memory>
#include <optional>
#include <span>
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
#include "python/gil.h"
#include "python/loom/loom_values.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

OwnedBytes owned(auto elements) {
  auto memory = std::make_shared<decltype(elements)>(std::move(elements));
  return {std::as_writable_bytes(std::span(*memory)), memory};
}

// f32 at any address as f32.
std::vector<float> floats_in(const HeldBuffer& buffer) {
  const ByteSpan bytes = buffer.bytes();
  std::vector<float> floats(bytes.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

EntityFile open_entity(const Path& path, const std::string& access, std::uint64_t offset,
                       std::optional<std::uint64_t> length) {
  const ReadOptions options = read_options(access, "on_first_touch", 0);
  const Unlocked unlocked;
  return EntityFile::open(path, options, {.offset = offset, .length = length});
}

Members entity_network(const EntityFile& file,
                       const std::optional<std::vector<std::uint64_t>>& layers) {
  const LoomNetwork network = [&] {
    const Unlocked unlocked;
    return file.network(layers);
  }();
  return network_out(network);
}

Members load_json(const Path& path) {
  const LoomNetwork network = [&] {
    const Unlocked unlocked;
    return load_loom_json(path);
  }();
  return network_out(network);
}

std::uint64_t save_network(const Path& path, nb::handle object, const std::string& kind,
                           bool replace, bool scale_before_morph) {
  const LoomNetwork network = network_in(object);
  return interruptible([&](const std::stop_token& stop) {
    const LoomSaveOptions options{.output = {.replace = replace},
                                  .work = {.cancel = stop},
                                  .scale_before_morph = scale_before_morph};
    return kind == "entity" ? save_entity(path, network, options)
                            : save_loom_json(path, network, options);
  });
}

OwnedBytes entity_bytes_of(nb::handle object) {
  const LoomNetwork network = network_in(object);
  const Unlocked unlocked;
  return owned(entity_bytes(network));
}

std::string json_of(nb::handle object, bool scale_before_morph) {
  const LoomNetwork network = network_in(object);
  const Unlocked unlocked;
  return loom_json(network, {.scale_before_morph = scale_before_morph});
}

OwnedBytes master_of(nb::handle object) {
  const LoomLayer layer = layer_in(object);
  const Unlocked unlocked;
  return owned(loom_master(layer));
}

Members with_master(nb::handle object, nb::handle array, float scale) {
  LoomLayer layer = layer_in(object);
  const HeldBuffer buffer(array, HeldBuffer::Use::read);
  {
    const Unlocked unlocked;
    set_loom_master(layer, floats_in(buffer), scale);
  }
  return weights_out(*layer.weights);
}

TupleWith<OwnedBytes, float> morph(const std::string& dtype, nb::handle array, float scale) {
  const LoomDType type = loom_dtype(dtype);
  const HeldBuffer buffer(array, HeldBuffer::Use::read);
  LoomNative native = [&] {
    const Unlocked unlocked;
    return morph_loom_weights(type, floats_in(buffer), scale);
  }();
  return nb::make_tuple(owned(std::move(native.packed)), native.scale);
}

OwnedBytes unpack(const std::string& dtype, nb::handle packed, float scale, std::uint64_t count) {
  const LoomDType type = loom_dtype(dtype);
  const HeldBuffer buffer(packed, HeldBuffer::Use::read);
  const Unlocked unlocked;
  return owned(unpack_loom_weights(type, buffer.bytes(), scale, count));
}

// Functions of bytes that need no GIL.
template <typename Function>
auto of_bytes(const Function& function) {
  return [function](nb::handle array) {
    const HeldBuffer buffer(array, HeldBuffer::Use::read);
    const Unlocked unlocked;
    return function(buffer.bytes());
  };
}

void bind_functions(nb::module_& module) {
  module.def("loom_dtype",
             [](const std::string& name) { return loom_dtype_name(loom_dtype(name)); });
  module.def("loom_master", master_of);
  module.def("loom_with_master", with_master);
  module.def("loom_weight_count",
             [](nb::handle layer) { return loom_weight_count(layer_in(layer)); });
  module.def("loom_morph", morph);
  module.def("loom_unpack", unpack);
  module.def("loom_element_count", [](const std::string& dtype, std::uint64_t bytes) {
    return loom_element_count(loom_dtype(dtype), bytes);
  });
  module.def("loom_decode", [](const std::string& dtype, nb::handle packed) {
    const LoomDType type = loom_dtype(dtype);
    return of_bytes([type](ByteSpan bytes) { return owned(decode_loom_weights(type, bytes)); })(
        packed);
  });
  module.def("loom_encode", [](const std::string& dtype, nb::handle elements) {
    const LoomDType type = loom_dtype(dtype);
    return of_bytes([type](ByteSpan bytes) { return owned(encode_loom_weights(type, bytes)); })(
        elements);
  });
  module.def(
      "loom_q4_0",
      [](nb::handle blob, std::optional<std::uint64_t> count) {
        return of_bytes([count](ByteSpan bytes) { return owned(decode_loom_q4_0(bytes, count)); })(
            blob);
      },
      nb::arg("blob"), nb::arg("count").none());
  module.def(
      "loom_bitnet", [](nb::handle blob) -> TupleWith<std::uint32_t, std::uint32_t, OwnedBytes> {
        const HeldBuffer buffer(blob, HeldBuffer::Use::read);
        const LoomBitNet facts = loom_bitnet_facts(buffer.bytes());
        return nb::make_tuple(facts.rows, facts.cols, owned(decode_loom_bitnet(buffer.bytes())));
      });
  module.def("loom_load_json", load_json);
  module.def("loom_parse_json", [](const std::string& text) {
    const LoomNetwork network = [&] {
      const Unlocked unlocked;
      return parse_loom_json(text);
    }();
    return network_out(network);
  });
  module.def("loom_build",
             [](const std::string& text) { return network_out(build_loom_network(text)); });
  module.def("loom_save", save_network);
  module.def("loom_entity_bytes", entity_bytes_of);
  module.def("loom_json", json_of);
}

}  // namespace

void bind_loom(nb::module_& module) {
  bind_result<EntityBlob>(module, "EntityBlob", "What a .entity file says of a blob.",
                          field("path", &EntityBlob::path, "\"layers.3\", \"layers.1.q_norm\"."),
                          field("dtype", &EntityBlob::dtype, "As the file spells it."),
                          field("scale", &EntityBlob::scale, "0: the file says none."),
                          field("native", &EntityBlob::native, "Packed; else f32."),
                          field("offset", &EntityBlob::offset, "From the start of the file."),
                          field("length", &EntityBlob::length));
  nb::class_<EntityFile>(module, "EntityFile")
      .def_static("open", open_entity, nb::arg("path"), nb::arg("access"), nb::arg("offset"),
                  nb::arg("length").none())
      .def_prop_ro("blobs",
                   [](const EntityFile& file) { return TupleOf<EntityBlob>{file.blobs()}; })
      .def_prop_ro("file_bytes", &EntityFile::file_bytes)
      .def_prop_ro("unknown_keys",
                   [](const EntityFile& file) { return text_list(file.unknown_keys()); })
      .def("header", [](const EntityFile& file) { return network_out(file.header()); })
      .def("blob",
           [](const EntityFile& file, std::size_t i) {
             StoredBytes bytes = [&] {
               const Unlocked unlocked;
               return file.blob_bytes(i);
             }();
             return Payload(bytes.bytes, bytes.owner);
           })
      .def("network", entity_network, nb::arg("layers").none())
      .def("layer_weights",
           [](const EntityFile& file, std::uint64_t layer) {
             const LoomWeights weights = [&] {
               const Unlocked unlocked;
               return file.layer_weights(layer);
             }();
             return weights_out(weights);
           })
      .def("transformer", [](const EntityFile& file) {
        const LoomTransformer transformer = [&] {
          const Unlocked unlocked;
          return file.transformer();
        }();
        return transformer_out(transformer);
      });
  bind_functions(module);
}

}  // namespace thalia::python
