#include "formats/loom/networks.h"

#include "boost_test.h"
#include "format/little_endian.h"
#include "support/files.h"
#include "thalia/formats/loom.h"

namespace thalia::test {
namespace {

std::vector<float> rising(std::uint64_t count) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < count; ++i)
    values.push_back(0.01f * static_cast<float>(static_cast<int>(i * 7 % 23) - 11));
  return values;
}

LoomLayer weighted(LoomLayer layer) {
  layer.seq_length = 1;
  set_loom_master(layer, rising(loom_weight_count(layer).value()));
  return layer;
}

LoomLayer dense(LoomDType dtype, std::int64_t in, std::int64_t out) {
  return weighted({.dtype = dtype, .input_height = in, .output_height = out});
}

StoredBytes stored(std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {.bytes = *owner, .owner = owner};
}
StoredBytes stored_floats(std::uint64_t count) {
  return stored(morph_loom_weights(LoomDType::float32, rising(count)).packed);
}

LoomComponent q4(const char* suffix, std::uint64_t count) {
  return {.suffix = suffix,
          .dtype = "Q4_0",
          .native = true,
          .bytes = stored(encode_loom_q4_0(rising(count)))};
}

LoomLayer float_norm() {
  return weighted({.type = LoomLayerType::rms_norm, .input_height = 8, .output_height = 8});
}

}  // namespace

LoomNetwork nested_network() {
  LoomNetwork network{.depth = 2, .rows = 1, .cols = 1, .layers_per_cell = 2};
  LoomLayer parallel{.type = LoomLayerType::parallel, .dtype = LoomDType::int8, .seq_length = 1};
  parallel.combine_mode = "a<b>&\"\\\n\u2028\u00e4";
  parallel.parallel_branches.push_back(dense(LoomDType::int4, 5, 3));
  LoomLayer inner{.type = LoomLayerType::sequential, .seq_length = 1};
  inner.sequential_layers.push_back(dense(LoomDType::ternary, 3, 3));
  inner.sequential_layers.push_back(
      weighted({.type = LoomLayerType::rms_norm, .dtype = LoomDType::bfloat16, .input_height = 4}));
  parallel.parallel_branches.push_back(inner);
  LoomLayer meta{.type = LoomLayerType::metacognition, .seq_length = 1, .is_disabled = true};
  meta.meta_rules.push_back({.condition = 2, .threshold = 1e-7, .command = 0.1f, .cooldown = -3});
  meta.meta_rules.push_back({.threshold = 1e21, .param = 1e-7f, .self_only = true});
  meta.meta_observed_layer.push_back(dense(LoomDType::binary, 3, 3));
  LoomLayer empty{.activation = LoomActivation::relu, .seq_length = 1};
  network.layers = {parallel, meta, empty, dense(LoomDType::float64, 2, 2)};
  for (std::size_t i = 0; i < 4; ++i) {
    network.layers[i].z = static_cast<std::int64_t>(i / 2);
    network.layers[i].l = static_cast<std::int64_t>(i % 2);
  }
  return network;
}

LoomNetwork transformer_network() {
  LoomNetwork network{.depth = 1, .rows = 1, .cols = 1, .layers_per_cell = 4};
  LoomLayer attention{.type = LoomLayerType::multi_head_attention,
                      .dtype = LoomDType::int4,
                      .num_heads = 2,
                      .num_kv_heads = 1,
                      .head_dim = 4,
                      .query_dim = 8,
                      .d_model = 8,
                      .seq_length = 1};
  attention.components = {q4("q4_0.200", 64),
                          q4("q4_0.201", 32),
                          q4("q4_0.202", 32),
                          q4("q4_0.203", 64),
                          {.suffix = "q_norm", .dtype = "float32", .bytes = stored_floats(4)}};
  LoomLayer swiglu{.type = LoomLayerType::swiglu,
                   .dtype = LoomDType::int4,
                   .input_height = 8,
                   .output_height = 16,
                   .seq_length = 1};
  swiglu.components = {q4("q4_0.100", 128),
                       q4("q4_0.101", 128),
                       q4("q4_0.102", 128),
                       {.suffix = "biases", .dtype = "float32", .bytes = stored_floats(40)}};
  network.layers = {float_norm(), attention, float_norm(), swiglu};
  for (std::size_t i = 0; i < 4; ++i) network.layers[i].l = static_cast<std::int64_t>(i);
  network.transformer = LoomTransformer{.architecture = "llama_style_decoder",
                                        .hidden_size = 8,
                                        .vocab_size = 5,
                                        .lm_head_tied = true,
                                        .has_final_norm = true,
                                        .weight_dtype = "int4",
                                        .dims = LoomTransformerDims{.num_layers = 1,
                                                                    .num_heads = 2,
                                                                    .num_kv_heads = 1,
                                                                    .head_dim = 4,
                                                                    .intermediate_size = 16,
                                                                    .rms_norm_eps = 1e-5,
                                                                    .rope_freq_base = 10000},
                                        .embeddings = stored_floats(40),
                                        .lm_head = {},
                                        .final_norm = stored_floats(8)};
  return network;
}

std::string entity_text(const LoomNetwork& network) {
  return text_of(entity_bytes(network));
}

EntityFile open_entity(const std::string& text, const ReadLimits& limits) {
  const auto owner = std::make_shared<const std::string>(text);
  return EntityFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.entity", limits);
}

std::string entity_with_header(const std::string& header, const std::string& payload) {
  const format::le64 length(header.size());
  std::string text("ENTITY\0\0\1\0\0\0", 12);
  return text.append(reinterpret_cast<const char*>(&length), 8) + header + payload;
}

std::string blob_header(const std::string& blobs, const std::string& layer) {
  return R"({"format_version":1,"network":{"depth":1,"rows":1,"cols":1,"layers_per_cell":1,)"
         R"("layers":[{)" +
         layer + R"(}]},"blobs":[)" + blobs + "]}";
}

std::string dense_json(const std::string& from, const std::string& to) {
  std::string text =
      R"({"id":"network","depth":1,"rows":1,"cols":1,"layers_per_cell":1,"layers":[{"z":0,"y":0,)"
      R"("x":0,"l":0,"type":"Dense","activation":"ReLU","dtype":"int8","input_height":5,)"
      R"("output_height":3,"seq_length":1,"softmax_type":"Standard",)"
      R"("weights":"AFvTEoEAADylf/cLvBuT","native":true,"scale":0.5}]})";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace thalia::test
