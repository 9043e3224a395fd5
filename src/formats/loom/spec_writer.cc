#include "formats/loom/spec_writer.h"

#include "formats/loom/spec_fields.h"

namespace thalia::formats::loom {
namespace {

void put_unless_zero(GoJson& json, std::string_view key, std::int64_t value) {
  if (value != 0) json.key(key).number(value);
}
void put_unless_zero(GoJson& json, std::string_view key, double value) {
  if (value != 0) json.key(key).number(value);
}
void put_unless_zero(GoJson& json, std::string_view key, bool value) {
  if (value) json.key(key).boolean(value);
}
void put_unless_zero(GoJson& json, std::string_view key, const std::string& value) {
  if (!value.empty()) json.key(key).text(value);
}

template <typename Fields>
void put_fields(GoJson& json, const Fields& fields, const LoomLayer& layer,
                std::string_view left_out = {}) {
  for (const LayerField& field : fields) {
    if (field.key == left_out) continue;
    std::visit([&](auto member) { put_unless_zero(json, field.key, layer.*member); }, field.member);
  }
}

bool keeps_short_sequence(LoomLayerType type) noexcept {
  return type == LoomLayerType::multi_head_attention || type == LoomLayerType::rnn ||
         type == LoomLayerType::lstm;
}

void put_meta_rules(GoJson& json, const std::vector<LoomMetaRule>& rules) {
  if (rules.empty()) return;
  json.key("meta_rules").begin_array();
  for (const LoomMetaRule& rule : rules) {
    json.begin_object();
    json.key("Condition").number(rule.condition);
    json.key("Threshold").number(rule.threshold);
    json.key("Command").number(rule.command);
    json.key("Param").number(rule.param);
    json.key("Cooldown").number(rule.cooldown);
    json.key("SelfOnly").boolean(rule.self_only);
    json.end_object();
  }
  json.end_array();
}

void write_layer(GoJson& json, const LoomLayer& layer, const std::string& path,
                 const SpecWriting& writing);

void put_layers(GoJson& json, std::string_view key, const std::vector<LoomLayer>& layers,
                const std::string& path, const SpecWriting& writing) {
  if (layers.empty()) return;
  json.key(key).begin_array();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    write_layer(json, layers[i], path + "." + std::string(key) + "." + std::to_string(i), writing);
  }
  json.end_array();
}

void write_layer(GoJson& json, const LoomLayer& layer, const std::string& path,
                 const SpecWriting& writing) {
  json.begin_object();
  json.key("z").number(layer.z).key("y").number(layer.y);
  json.key("x").number(layer.x).key("l").number(layer.l);
  json.key("type").text(loom_name(layer.type));
  json.key("activation").text(loom_name(layer.activation));
  json.key("dtype").text(loom_dtype_name(layer.dtype));
  const bool shortened =
      writing.short_sequences && layer.seq_length == 1 && !keeps_short_sequence(layer.type);
  put_fields(json, kFieldsBeforeSoftmax, layer, shortened ? "seq_length" : "");
  json.key("softmax_type").text(loom_name(layer.softmax_type));
  put_fields(json, kFieldsBeforeWeights, layer);
  if (writing.weights) writing.weights(json, path, layer);
  put_layers(json, "parallel_branches", layer.parallel_branches, path, writing);
  put_unless_zero(json, "combine_mode", layer.combine_mode);
  put_layers(json, "sequential_layers", layer.sequential_layers, path, writing);
  put_fields(json, kFieldsBehindLayers, layer);
  put_meta_rules(json, layer.meta_rules);
  if (!layer.meta_observed_layer.empty()) {
    json.key("meta_observed_layer");
    write_layer(json, layer.meta_observed_layer.front(), path + ".meta_observed_layer", writing);
  }
  json.end_object();
}

}  // namespace

void write_network(GoJson& json, const LoomNetwork& network, const SpecWriting& writing) {
  json.begin_object().key("id").text("network");
  json.key("depth").number(network.depth).key("rows").number(network.rows);
  json.key("cols").number(network.cols).key("layers_per_cell").number(network.layers_per_cell);
  json.key("layers").begin_array();
  for (const LoomLayer& layer : network.layers) {
    const std::uint64_t place = grid_place(network, layer);
    write_layer(json, layer, "layers." + std::to_string(place), writing);
  }
  json.end_array().end_object();
}

void write_transformer(GoJson& json, const LoomTransformer& transformer) {
  json.begin_object().key("architecture").text(transformer.architecture);
  json.key("hidden_size").number(transformer.hidden_size);
  json.key("vocab_size").number(transformer.vocab_size);
  put_unless_zero(json, "lm_head_tied", transformer.lm_head_tied);
  put_unless_zero(json, "has_final_norm", transformer.has_final_norm);
  put_unless_zero(json, "weight_dtype", transformer.weight_dtype);
  if (transformer.dims) {
    const LoomTransformerDims& dims = *transformer.dims;
    json.key("dims").begin_object();
    json.key("num_layers").number(dims.num_layers).key("num_heads").number(dims.num_heads);
    json.key("num_kv_heads").number(dims.num_kv_heads).key("head_dim").number(dims.head_dim);
    put_unless_zero(json, "query_dim", dims.query_dim);
    put_unless_zero(json, "kv_dim", dims.kv_dim);
    json.key("intermediate_size").number(dims.intermediate_size);
    put_unless_zero(json, "rms_norm_eps", dims.rms_norm_eps);
    put_unless_zero(json, "rope_freq_base", dims.rope_freq_base);
    put_unless_zero(json, "activation", dims.activation);
    json.end_object();
  }
  json.end_object();
}

void write_blobs(GoJson& json, const std::vector<BlobRecord>& blobs, bool placed) {
  if (blobs.empty()) {
    json.null();
    return;
  }
  json.begin_array();
  for (const BlobRecord& blob : blobs) {
    json.begin_object().key("path").text(blob.path);
    if (placed) json.key("offset").number(blob.offset).key("length").number(blob.length);
    json.key("dtype").text(blob.dtype);
    if (blob.scale != 0) json.key("scale").number(blob.scale);
    json.key("native").boolean(blob.native).end_object();
  }
  json.end_array();
}

}  // namespace thalia::formats::loom
