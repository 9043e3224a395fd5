// Reads any bytes as the config.json of a decoder of Hugging Face. What is accepted keeps its
// bounds, and the tensors of a small model have their places or are refused.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hugging_face/tensor_places.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace hugging_face_target {

namespace hugging_face = formats::hugging_face;

constexpr ReadLimits kLimits{.max_json_depth = 64};

// One block: 4 query heads of 2, 2 key heads, hidden 6, inner 5, 7 words.
std::vector<formats::SinkTensor> tensors() {
  std::vector<formats::SinkTensor> out;
  const auto add = [&](const std::string& name, std::initializer_list<std::uint64_t> shape) {
    out.push_back({.name = name, .layout = {.dtype = DType::f32, .shape = Shape(shape)}});
  };
  add("model.embed_tokens.weight", {7, 6});
  add("model.norm.weight", {6});
  const std::string at = "model.layers.0.";
  add(at + "self_attn.q_proj.weight", {8, 6});
  add(at + "self_attn.k_proj.weight", {4, 6});
  add(at + "self_attn.v_proj.weight", {4, 6});
  add(at + "self_attn.o_proj.weight", {6, 8});
  add(at + "mlp.down_proj.weight", {6, 5});
  add(at + "mlp.gate_proj.weight", {5, 6});
  add(at + "mlp.up_proj.weight", {5, 6});
  add(at + "input_layernorm.weight", {6});
  add(at + "post_attention_layernorm.weight", {6});
  return out;
}

void run(const std::uint8_t* data, std::size_t size) {
  hugging_face::DecoderConfig config;
  try {
    config = hugging_face::read_config({reinterpret_cast<const char*>(data), size}, kLimits);
  } catch (const FormatError&) {
    return;
  }
  for (const std::uint64_t extent : {config.blocks, config.heads, config.kv_heads, config.head_dim,
                                     config.hidden, config.inner, config.query(), config.kv()})
    FUZZ_REQUIRE(extent != 0 && extent <= hugging_face::kMaxExtent);
  try {
    const hugging_face::TensorPlaces places = hugging_face::place_tensors(tensors(), config);
    FUZZ_REQUIRE(places.blocks.size() == config.blocks && config.blocks == 1);
    FUZZ_REQUIRE(places.vocabulary == 7 && config.hidden == 6 && config.inner == 5);
  } catch (const UnsupportedError&) {
    // The config is that of another model.
  }
}

}  // namespace hugging_face_target
}  // namespace

FUZZ_TARGET(hugging_face)
