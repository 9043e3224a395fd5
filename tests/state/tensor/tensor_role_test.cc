#include "thalia/types.h"

#include <string_view>

#include "boost_test.h"
#include "thalia/tensor.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(tensor_role)

namespace {

void is(Role role, unsigned rank, std::string_view name) {
  BOOST_TEST(role_name(role_of_name(name, rank)) == role_name(role), name << ", rank " << rank);
}

}  // namespace

// Names of PyTorch, transformers, timm, flax and their optimizers.
BOOST_AUTO_TEST_CASE(roles_of_names) {
  for (const char* name : {"model.layers.0.mlp.up_proj.weight", "lm_head.weight", "w_rec",
                           "h.0.attn.c_attn.weight", "patch_embed.proj.weight",
                           "time_embedding.linear_1.weight", "normalizer.kernel", "Dense_0/kernel"})
    is(Role::weights, 2, name);
  is(Role::weights, 1, "A_log");
  is(Role::weights, 0, "temperature");

  for (const char* name : {"model.layers.0.self_attn.q_proj.bias", "in_proj_bias", "bias_ih_l0",
                           "linear/b", "Dense_0/bias"})
    is(Role::bias, 1, name);
  is(Role::bias, 2, "relative_position_bias_table");

  for (const char* name :
       {"model.layers.0.input_layernorm.weight", "model.norm.weight", "transformer.ln_f.bias",
        "h.0.ln_1.weight", "layer1.0.bn1.bias", "BatchNorm_0/scale", "blocks.0.norm2.weight",
        "attn.q_norm.weight", "bert.embeddings.LayerNorm.gamma", "downsample.1.weight", "ln.g"})
    is(Role::normalization, 1, name);
  // What is computed from a condition is a matrix, whatever its layer is called.
  is(Role::weights, 2, "blocks.0.norm1.linear.weight");
  is(Role::bias, 1, "blocks.0.norm1.linear.bias");

  for (const char* name : {"model.embed_tokens.weight", "transformer.wte.weight", "wpe.weight",
                           "token_embd.weight", "embeddings.word_embeddings.weight", "pos_embed",
                           "Embed_0/embedding", "tok_embeddings.weight"})
    is(Role::embedding, 2, name);
  is(Role::embedding, 3, "pos_embed");

  for (const char* name : {"bn1.running_mean", "bn1.running_var", "rotary_emb.inv_freq"})
    is(Role::buffer, 1, name);
  is(Role::buffer, 0, "bn1.num_batches_tracked");
  is(Role::buffer, 4, "h.0.attn.bias");

  for (const char* name :
       {"optimizer.state.0.exp_avg", "model.layers.0.norm.weight.exp_avg_sq", "m.momentum_buffer",
        "opt_state/0/nu/Dense_0/kernel", "adamw.step", "Optimizer.bias"})
    is(Role::optimizer, 2, name);
  is(Role::optimizer, 0, "optimizer.state.0.step");
}

BOOST_AUTO_TEST_CASE(a_role_that_was_given_counts_before_the_name) {
  for (std::uint8_t code = 0; code < kRoleCount; ++code) {
    const Role role{code};
    if (role == Role::weights) continue;
    BOOST_TEST((likely_role(role, "m.exp_avg", 2) == role));
  }
  BOOST_TEST((likely_role(Role::weights, "m.exp_avg", 2) == Role::optimizer));
  BOOST_TEST((likely_role(Role::weights, "w", 2) == Role::weights));
}

BOOST_AUTO_TEST_CASE(weights_and_embeddings_are_weights) {
  for (std::uint8_t code = 0; code < kRoleCount; ++code) {
    const Role role{code};
    BOOST_TEST(is_weights(role) == (role == Role::weights || role == Role::embedding));
  }
}

BOOST_AUTO_TEST_SUITE_END()
