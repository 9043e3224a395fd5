// What the original passes over, so that the network computes something else, is refused here:
// norms that a block of four layers lacks, layers that it does not know.
#include "formats/hugging_face/tensor_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/source/list_names.h"

namespace thalia::formats::hugging_face {
namespace {

constexpr std::array<std::string_view, kRoles> kNames{"input_layernorm.weight",
                                                      "self_attn.q_proj.weight",
                                                      "self_attn.k_proj.weight",
                                                      "self_attn.v_proj.weight",
                                                      "self_attn.o_proj.weight",
                                                      "self_attn.q_proj.bias",
                                                      "self_attn.k_proj.bias",
                                                      "self_attn.v_proj.bias",
                                                      "self_attn.o_proj.bias",
                                                      "self_attn.q_norm.weight",
                                                      "self_attn.k_norm.weight",
                                                      "self_attn.attn_sub_norm.weight",
                                                      "post_attention_layernorm.weight",
                                                      "mlp.gate_proj.weight",
                                                      "mlp.up_proj.weight",
                                                      "mlp.down_proj.weight",
                                                      "mlp.gate_proj.bias",
                                                      "mlp.up_proj.bias",
                                                      "mlp.down_proj.bias",
                                                      "mlp.ffn_sub_norm.weight"};
constexpr DecoderPart kNeeded[] = {kInputNorm,  kQuery, kKey, kValue, kOutput,
                                   kMiddleNorm, kGate,  kUp,  kDown};

struct BlockName {
  std::string_view prefix;
  std::uint64_t number;
  std::string_view rest;
};

// PREFIXlayers.N.REST
std::optional<BlockName> block_name(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  BlockName found{.prefix = name.substr(0, at), .number = 0, .rest = {}};
  const std::string_view tail = name.substr(at + kLayers.size());
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), found.number);
  const auto digits = static_cast<std::size_t>(end - tail.data());
  if (error != std::errc{} || digits == tail.size() || tail[digits] != '.') return std::nullopt;
  if (digits > 1 && tail.front() == '0') return std::nullopt;
  found.rest = tail.substr(digits + 1);
  return found;
}

[[noreturn]] void refuse(std::string message, std::string_view tensor, std::string value = {},
                         std::string bound = {}) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature, std::move(message),
      {.tensor = printable(tensor), .value = std::move(value), .bound = std::move(bound)});
}

class Placing {
 public:
  Placing(const std::vector<SinkTensor>& tensors, const DecoderConfig& config)
      : tensors_(tensors), config_(config) {}

  TensorPlaces made() {
    place_tensors();
    check_complete();
    check_shapes();
    return std::move(out_);
  }

 private:
  void place_tensors() {
    std::unordered_map<std::string_view, std::size_t> roles;
    for (std::size_t i = 0; i < kRoles; ++i) roles.emplace(kNames[i], i);
    // The original's other names.
    roles.emplace("self_attn.inner_attn_ln.weight", kAttentionNorm);
    roles.emplace("mlp.ffn_layernorm.weight", kFeedForwardNorm);
    // There are no more blocks than tensors, whatever the config says.
    out_.blocks.resize(std::min<std::uint64_t>(config_.blocks, tensors_.size()));
    std::optional<std::string_view> prefix;
    for (const SinkTensor& tensor : tensors_) {
      const auto block = block_name(tensor.name);
      if (!block) continue;
      if (!prefix) prefix = block->prefix;
      if (prefix != block->prefix)
        refuse("a network of Loom is of one stack of blocks", tensor.name, printable(block->prefix),
               printable(*prefix));
    }
    prefix_ = prefix.value_or("model.");
    std::vector<std::string> passed;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].name;
      if (const auto block = block_name(name)) {
        const auto role = roles.find(block->rest);
        if (role != roles.end() && block->number < out_.blocks.size()) {
          put(out_.blocks[block->number][role->second], i);
          continue;
        }
      } else if (name == prefix_ + "embed_tokens.weight") {
        out_.embeddings = i;
        continue;
      } else if (name == prefix_ + "norm.weight") {
        out_.final_norm = i;
        continue;
      } else if (name == "lm_head.weight" || name == prefix_ + "lm_head.weight") {
        put(out_.head, i);
        continue;
      }
      // Follows from the config.
      if (!name.ends_with("rotary_emb.inv_freq"))
        refuse("a network of Loom has no place for this tensor", name);
      passed.push_back(printable(name));
    }
    if (!passed.empty())
      out_.losses.push_back(
          fmt::format("tensors that follow from the config: {}", list_names(passed)));
  }

  void put(Place& place, std::size_t tensor) {
    if (place)
      refuse("it has the place of another tensor", tensors_[tensor].name,
             printable(tensors_[*place].name));
    place = tensor;
  }

  void check_complete() {
    std::vector<std::string> missing;
    if (!out_.embeddings) missing.push_back(prefix_ + "embed_tokens.weight");
    if (!out_.final_norm) missing.push_back(prefix_ + "norm.weight");
    // Where the config says nothing, a missing head is the embeddings.
    if (!out_.head && config_.tied_head == false) missing.push_back("lm_head.weight");
    for (std::uint64_t i = 0; i < out_.blocks.size(); ++i)
      for (const DecoderPart role : kNeeded)
        if (!out_.blocks[i][role])
          missing.push_back(fmt::format("{}layers.{}.{}", prefix_, i, kNames[role]));
    if (out_.blocks.size() < config_.blocks)
      missing.push_back(fmt::format("{}layers.{}", prefix_, out_.blocks.size()));
    if (missing.empty()) return;
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        "tensors that a network of Loom needs are missing: " + list_names(missing),
        {.section = "tensors"});
  }

  const SinkTensor& tensor(const Place& place) const { return tensors_[place.value()]; }

  void check_shape(const Place& place, const Shape& shape) const {
    if (!place) return;
    const SinkTensor& found = tensor(place);
    if (found.layout.encoding != Encoding::dense)
      refuse("the format holds dense tensors only", found.name);
    if (found.layout.shape != shape)
      refuse("another shape than the config says", found.name, found.layout.shape.to_string(),
             shape.to_string());
    const DType dtype = found.layout.dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      throw UnsupportedDtypeError(std::string(dtype_name(dtype)),
                                  "a network of Loom is made of other types",
                                  {.tensor = printable(found.name),
                                   .value = std::string(dtype_name(dtype)),
                                   .bound = "f32, f16 or bf16"});
  }

  void check_shapes() {
    const std::uint64_t d = config_.hidden, q = config_.query(), kv = config_.kv();
    const Shape& embedded = tensor(out_.embeddings).layout.shape;
    out_.vocabulary = embedded.rank() == 2 ? embedded[0] : 0;
    if (out_.vocabulary > kMaxExtent) out_.vocabulary = 0;
    check_shape(out_.embeddings, Shape({out_.vocabulary, d}));
    check_shape(out_.head, Shape({out_.vocabulary, d}));
    check_shape(out_.final_norm, Shape({d}));
    for (const Block& block : out_.blocks) {
      const std::pair<DecoderPart, Shape> shapes[] = {{kInputNorm, Shape({d})},
                                                      {kQuery, Shape({q, d})},
                                                      {kKey, Shape({kv, d})},
                                                      {kValue, Shape({kv, d})},
                                                      {kOutput, Shape({d, q})},
                                                      {kQueryBias, Shape({q})},
                                                      {kKeyBias, Shape({kv})},
                                                      {kValueBias, Shape({kv})},
                                                      {kOutputBias, Shape({d})},
                                                      {kQueryNorm, Shape({config_.head_dim})},
                                                      {kKeyNorm, Shape({config_.head_dim})},
                                                      {kAttentionNorm, Shape({q})},
                                                      {kMiddleNorm, Shape({d})},
                                                      {kGate, Shape({config_.inner, d})},
                                                      {kUp, Shape({config_.inner, d})},
                                                      {kDown, Shape({d, config_.inner})},
                                                      {kGateBias, Shape({config_.inner})},
                                                      {kUpBias, Shape({config_.inner})},
                                                      {kDownBias, Shape({d})},
                                                      {kFeedForwardNorm, Shape({config_.inner})}};
      for (const auto& [role, shape] : shapes) check_shape(block[role], shape);
    }
  }

  const std::vector<SinkTensor>& tensors_;
  const DecoderConfig& config_;
  std::string prefix_;  ///< "model."
  TensorPlaces out_;
};

}  // namespace

TensorPlaces place_tensors(const std::vector<SinkTensor>& tensors, const DecoderConfig& config) {
  return Placing(tensors, config).made();
}

}  // namespace thalia::formats::hugging_face
