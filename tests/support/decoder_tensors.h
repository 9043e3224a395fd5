// The tensors of a small decoder of Hugging Face: 4 query heads of 2, 2 key heads, hidden 6,
// inner 5.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "formats/source/tensor_sink.h"

namespace thalia::test {

inline void add_tensor(std::vector<formats::SinkTensor>& to, const std::string& name,
                       std::initializer_list<std::uint64_t> shape, DType dtype) {
  to.push_back({.name = name, .layout = {.dtype = dtype, .shape = Shape(shape)}});
}

/// The embeddings have 7 words.
inline void add_decoder_embeddings(std::vector<formats::SinkTensor>& to, DType dtype) {
  add_tensor(to, "model.embed_tokens.weight", {7, 6}, dtype);
}

inline void add_decoder_norm(std::vector<formats::SinkTensor>& to, DType dtype) {
  add_tensor(to, "model.norm.weight", {6}, dtype);
}

inline void add_decoder_block(std::vector<formats::SinkTensor>& to, int number, DType dtype) {
  const std::string at = "model.layers." + std::to_string(number) + ".";
  add_tensor(to, at + "self_attn.q_proj.weight", {8, 6}, dtype);
  add_tensor(to, at + "self_attn.k_proj.weight", {4, 6}, dtype);
  add_tensor(to, at + "self_attn.v_proj.weight", {4, 6}, dtype);
  add_tensor(to, at + "self_attn.o_proj.weight", {6, 8}, dtype);
  add_tensor(to, at + "mlp.down_proj.weight", {6, 5}, dtype);
  add_tensor(to, at + "mlp.gate_proj.weight", {5, 6}, dtype);
  add_tensor(to, at + "mlp.up_proj.weight", {5, 6}, dtype);
  add_tensor(to, at + "input_layernorm.weight", {6}, dtype);
  add_tensor(to, at + "post_attention_layernorm.weight", {6}, dtype);
}

}  // namespace thalia::test
