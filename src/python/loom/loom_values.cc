// An attribute that is missing, or of another type, is an error that names it: a layer that Loom
// would read otherwise than Python meant it is not written.
#include "python/loom/loom_values.h"

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>

#include "formats/loom/spec_fields.h"
#include "io/memory/allocation_limit.h"
#include "python/buffers.h"
#include "python/gil.h"
#include "python/options.h"
#include "thalia/storage.h"

namespace thalia::python {

namespace nb = nanobind;
namespace loom = formats::loom;

LoomDType loom_dtype(const std::string& name) {
  if (const auto dtype = loom_dtype_from_name(name)) return *dtype;
  std::string names;
  for (std::uint8_t i = 0; i < kLoomDTypeCount; ++i) {
    if (i > 0) names += ", ";
    names += loom_dtype_name(static_cast<LoomDType>(i));
  }
  fail_choice("dtype", name, names);
}

// Layers within layers: more, as where one is within itself, are refused.
constexpr unsigned kMostNesting = 100;

// Out: what lies in a mapping stays there.

nb::object bytes_out(const StoredBytes& bytes) {
  if (bytes.bytes.empty()) return nb::none();
  return nb::cast(Payload(bytes.bytes, bytes.owner));
}

// At an address that suits f32.
nb::object floats_out(const StoredBytes& bytes) {
  if (bytes.bytes.empty() ||
      reinterpret_cast<std::uintptr_t>(bytes.bytes.data()) % alignof(float) == 0)
    return bytes_out(bytes);
  io::MemoryBudget budget({}, bytes.bytes.size());
  auto copy = std::make_shared<std::vector<std::byte>>(
      budget.vector<std::byte>("weights", bytes.bytes.size()));
  std::memcpy(copy->data(), bytes.bytes.data(), copy->size());
  return nb::cast(Payload(*copy, copy));
}

Members weights_out(const LoomWeights& weights) {
  nb::dict out;
  out["dtype"] = loom_dtype_name(weights.dtype);
  out["scale"] = weights.scale;
  out["native"] = bytes_out(weights.native);
  out["master"] = floats_out(weights.master);
  return out;
}

template <typename Fields>
void fields_out(const Fields& fields, const LoomLayer& layer, nb::dict& out) {
  for (const loom::LayerField& field : fields)
    std::visit([&](auto member) { out[text_object(field.key)] = layer.*member; }, field.member);
}

Members layer_out(const LoomLayer& layer);

nb::list layers_out(const std::vector<LoomLayer>& layers) {
  nb::list out;
  for (const LoomLayer& layer : layers) out.append(layer_out(layer));
  return out;
}

Members layer_out(const LoomLayer& layer) {
  nb::dict out;
  out["z"] = layer.z, out["y"] = layer.y, out["x"] = layer.x, out["l"] = layer.l;
  out["type"] = loom_name(layer.type);
  out["activation"] = loom_name(layer.activation);
  out["dtype"] = loom_dtype_name(layer.dtype);
  out["softmax_type"] = loom_name(layer.softmax_type);
  fields_out(loom::kFieldsBeforeSoftmax, layer, out);
  fields_out(loom::kFieldsBeforeWeights, layer, out);
  fields_out(loom::kFieldsBehindLayers, layer, out);
  out["weights"] = layer.weights ? nb::object(weights_out(*layer.weights)) : nb::none();
  nb::list components;
  for (const LoomComponent& component : layer.components) {
    nb::dict one;
    one["suffix"] = component.suffix, one["dtype"] = component.dtype;
    one["scale"] = component.scale, one["native"] = component.native;
    one["bytes"] = nb::cast(Payload(component.bytes.bytes, component.bytes.owner));
    components.append(one);
  }
  out["components"] = components;
  out["parallel_branches"] = layers_out(layer.parallel_branches);
  out["combine_mode"] = layer.combine_mode;
  out["sequential_layers"] = layers_out(layer.sequential_layers);
  nb::list rules;
  for (const LoomMetaRule& rule : layer.meta_rules) {
    nb::dict one;
    one["condition"] = rule.condition, one["threshold"] = rule.threshold;
    one["command"] = rule.command, one["param"] = rule.param;
    one["cooldown"] = rule.cooldown, one["self_only"] = rule.self_only;
    rules.append(one);
  }
  out["meta_rules"] = rules;
  out["meta_observed_layer"] = layer.meta_observed_layer.empty()
                                   ? nb::none()
                                   : nb::object(layer_out(layer.meta_observed_layer.front()));
  return out;
}

Members transformer_out(const LoomTransformer& transformer) {
  nb::dict out;
  out["architecture"] = transformer.architecture;
  out["hidden_size"] = transformer.hidden_size, out["vocab_size"] = transformer.vocab_size;
  out["lm_head_tied"] = transformer.lm_head_tied;
  out["has_final_norm"] = transformer.has_final_norm;
  out["weight_dtype"] = transformer.weight_dtype;
  out["dims"] = nb::none();
  if (transformer.dims) {
    const LoomTransformerDims& dims = *transformer.dims;
    nb::dict one;
    one["num_layers"] = dims.num_layers, one["num_heads"] = dims.num_heads;
    one["num_kv_heads"] = dims.num_kv_heads, one["head_dim"] = dims.head_dim;
    one["query_dim"] = dims.query_dim, one["kv_dim"] = dims.kv_dim;
    one["intermediate_size"] = dims.intermediate_size;
    one["rms_norm_eps"] = dims.rms_norm_eps, one["rope_freq_base"] = dims.rope_freq_base;
    one["activation"] = dims.activation;
    out["dims"] = one;
  }
  out["embeddings"] = floats_out(transformer.embeddings);
  out["lm_head"] = floats_out(transformer.lm_head);
  out["final_norm"] = floats_out(transformer.final_norm);
  return out;
}

Members network_out(const LoomNetwork& network) {
  nb::dict out;
  out["depth"] = network.depth, out["rows"] = network.rows, out["cols"] = network.cols;
  out["layers_per_cell"] = network.layers_per_cell;
  out["layers"] = layers_out(network.layers);
  out["transformer"] =
      network.transformer ? nb::object(transformer_out(*network.transformer)) : nb::none();
  return out;
}

// In: an attribute that has another type is a TypeError that names it.

template <typename T>
T member(nb::handle object, const char* name) {
  T value{};
  const nb::object found = object.attr(name);
  if (nb::try_cast(found, value)) return value;
  constexpr const char* kExpected = std::is_same_v<T, bool>          ? "a bool"
                                    : std::is_same_v<T, std::string> ? "a str"
                                    : std::is_integral_v<T>          ? "an int of 64 bits"
                                                                     : "a number";
  PyErr_Format(PyExc_TypeError, "%s: %R; expected %s", name, found.ptr(), kExpected);
  throw nb::python_error();
}

// A buffer is held, and what holds it may let go anywhere.
StoredBytes bytes_in(nb::handle object) {
  if (object.is_none()) return {};
  const std::shared_ptr<const HeldBuffer> held(new HeldBuffer(object, HeldBuffer::Use::read),
                                               [](const HeldBuffer* buffer) {
                                                 if (const Locked locked; locked) delete buffer;
                                               });
  return {.bytes = held->bytes(), .owner = held};
}

LoomWeights weights_in(nb::handle object) {
  return {.dtype = loom_dtype(member<std::string>(object, "dtype")),
          .scale = static_cast<float>(member<double>(object, "scale")),
          .native = bytes_in(object.attr("native")),
          .master = bytes_in(object.attr("master"))};
}

template <typename Fields>
void fields_in(const Fields& fields, nb::handle object, LoomLayer& layer) {
  for (const loom::LayerField& field : fields) {
    std::visit(
        [&](auto at) {
          using T = std::remove_cvref_t<decltype(layer.*at)>;
          layer.*at = member<T>(object, std::string(field.key).c_str());
        },
        field.member);
  }
}

// A name in any case; what the original would take for something else is refused.
template <typename Value>
Value named(nb::handle object, const char* name, Value (*parse)(std::string_view) noexcept) {
  const std::string text = member<std::string>(object, name);
  const Value value = parse(text);
  std::string spelled = std::string(loom_name(value)), given = text;
  for (std::string* const one : {&spelled, &given})
    for (char& c : *one)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (spelled != given) fail_choice(name, text, "a name that Loom has");
  return value;
}

std::vector<LoomLayer> layers_in(nb::handle list, unsigned depth) {
  std::vector<LoomLayer> layers;
  for (const nb::handle one : list) layers.push_back(layer_in(one, depth));
  return layers;
}

LoomLayer layer_in(nb::handle object, unsigned depth) {
  if (depth > kMostNesting)
    fail_choice("layers", "layers within each other", std::to_string(kMostNesting) + " at most");
  LoomLayer layer;
  layer.z = member<std::int64_t>(object, "z"), layer.y = member<std::int64_t>(object, "y");
  layer.x = member<std::int64_t>(object, "x"), layer.l = member<std::int64_t>(object, "l");
  layer.type = named(object, "type", parse_loom_layer_type);
  layer.activation = named(object, "activation", parse_loom_activation);
  layer.dtype = loom_dtype(member<std::string>(object, "dtype"));
  layer.softmax_type = named(object, "softmax_type", parse_loom_softmax);
  fields_in(loom::kFieldsBeforeSoftmax, object, layer);
  fields_in(loom::kFieldsBeforeWeights, object, layer);
  fields_in(loom::kFieldsBehindLayers, object, layer);
  const nb::object weights = object.attr("weights");
  if (!weights.is_none()) layer.weights = weights_in(weights);
  for (const nb::handle one : object.attr("components")) {
    layer.components.push_back({.suffix = member<std::string>(one, "suffix"),
                                .dtype = member<std::string>(one, "dtype"),
                                .scale = static_cast<float>(member<double>(one, "scale")),
                                .native = member<bool>(one, "native"),
                                .bytes = bytes_in(one.attr("bytes"))});
  }
  layer.parallel_branches = layers_in(object.attr("parallel_branches"), depth + 1);
  layer.combine_mode = member<std::string>(object, "combine_mode");
  layer.sequential_layers = layers_in(object.attr("sequential_layers"), depth + 1);
  for (const nb::handle one : object.attr("meta_rules")) {
    layer.meta_rules.push_back({.condition = member<std::int64_t>(one, "condition"),
                                .threshold = member<double>(one, "threshold"),
                                .command = static_cast<float>(member<double>(one, "command")),
                                .param = static_cast<float>(member<double>(one, "param")),
                                .cooldown = member<std::int64_t>(one, "cooldown"),
                                .self_only = member<bool>(one, "self_only")});
  }
  const nb::object observed = object.attr("meta_observed_layer");
  if (!observed.is_none()) layer.meta_observed_layer.push_back(layer_in(observed, depth + 1));
  return layer;
}

LoomTransformer transformer_in(nb::handle object) {
  LoomTransformer out{.architecture = member<std::string>(object, "architecture"),
                      .hidden_size = member<std::int64_t>(object, "hidden_size"),
                      .vocab_size = member<std::int64_t>(object, "vocab_size"),
                      .lm_head_tied = member<bool>(object, "lm_head_tied"),
                      .has_final_norm = member<bool>(object, "has_final_norm"),
                      .weight_dtype = member<std::string>(object, "weight_dtype"),
                      .embeddings = bytes_in(object.attr("embeddings")),
                      .lm_head = bytes_in(object.attr("lm_head")),
                      .final_norm = bytes_in(object.attr("final_norm"))};
  const nb::object dims = object.attr("dims");
  if (dims.is_none()) return out;
  out.dims =
      LoomTransformerDims{.num_layers = member<std::int64_t>(dims, "num_layers"),
                          .num_heads = member<std::int64_t>(dims, "num_heads"),
                          .num_kv_heads = member<std::int64_t>(dims, "num_kv_heads"),
                          .head_dim = member<std::int64_t>(dims, "head_dim"),
                          .query_dim = member<std::int64_t>(dims, "query_dim"),
                          .kv_dim = member<std::int64_t>(dims, "kv_dim"),
                          .intermediate_size = member<std::int64_t>(dims, "intermediate_size"),
                          .rms_norm_eps = member<double>(dims, "rms_norm_eps"),
                          .rope_freq_base = member<double>(dims, "rope_freq_base"),
                          .activation = member<std::string>(dims, "activation")};
  return out;
}

LoomNetwork network_in(nb::handle object) {
  LoomNetwork network{.depth = member<std::int64_t>(object, "depth"),
                      .rows = member<std::int64_t>(object, "rows"),
                      .cols = member<std::int64_t>(object, "cols"),
                      .layers_per_cell = member<std::int64_t>(object, "layers_per_cell"),
                      .layers = layers_in(object.attr("layers"), 0)};
  const nb::object transformer = object.attr("transformer");
  if (!transformer.is_none()) network.transformer = transformer_in(transformer);
  return network;
}

}  // namespace thalia::python
