"""Decoders of transformers as networks of Loom: every number of every tensor is where Loom looks for it."""

import json

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.loom as loom
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SIZES = dict(
    vocab_size=37,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
)


def made(model, config, dtype=torch.float32, **more):
    torch.manual_seed(5)
    module = model(config(**SIZES, **more)).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():  # norms and biases are 1 and 0 at first
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return module


def flat(tensor):
    return tensor.detach().float().numpy().reshape(-1)


def same(found, *tensors):
    np.testing.assert_array_equal(found, np.concatenate([flat(tensor) for tensor in tensors]))


def biases(*layers):
    return [torch.zeros(layer.out_features) if layer.bias is None else layer.bias for layer in layers]


def check(module, network):
    config, transformer = module.config, network.transformer
    assert (network.depth, network.rows, network.cols, network.layers_per_cell) == (1, 1, 1, 12)
    assert transformer.weight_dtype == "float32" and transformer.architecture == "llama_style_decoder"
    assert transformer.dims.rms_norm_eps == config.rms_norm_eps and transformer.vocab_size == 37
    same(transformer.embeddings, module.model.embed_tokens.weight)
    same(transformer.final_norm, module.model.norm.weight)
    assert transformer.lm_head_tied == config.tie_word_embeddings
    if transformer.lm_head_tied:
        assert transformer.lm_head is None
    else:
        same(transformer.lm_head, module.lm_head.weight)
    for number, block in enumerate(module.model.layers):
        before, attention, after, gated = network.layers[4 * number : 4 * number + 4]
        assert [layer.type for layer in (before, attention, after, gated)] == [
            "RMSNorm",
            "MultiHeadAttention",
            "RMSNorm",
            "SwiGLU",
        ]
        assert before.weights.dtype == attention.weights.dtype == gated.weights.dtype == "float32"
        assert attention.rope_freq_base == config.rope_parameters["rope_theta"]
        same(before.master(), block.input_layernorm.weight)
        same(after.master(), block.post_attention_layernorm.weight)
        parts = [getattr(block.self_attn, f"{name}_proj") for name in "qkvo"]
        same(attention.master(), *(part.weight for part in parts), *biases(*parts))
        parts = [block.mlp.gate_proj, block.mlp.up_proj, block.mlp.down_proj]
        same(gated.master(), *(part.weight for part in parts), *biases(*parts))
        norms = {each.suffix: each.array() for each in attention.components}
        assert set(norms) == {name for name in ("q_norm", "k_norm") if hasattr(block.self_attn, name)}
        for name, array in norms.items():
            same(array, getattr(block.self_attn, name).weight)


@pytest.mark.parametrize(
    ("model", "config", "more"),
    [
        (LlamaForCausalLM, LlamaConfig, {}),
        (LlamaForCausalLM, LlamaConfig, {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
        (MistralForCausalLM, MistralConfig, {"head_dim": 10, "sliding_window": None}),
        (Qwen2ForCausalLM, Qwen2Config, {}),
        (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 8, "tie_word_embeddings": True}),
    ],
)
def test_a_decoder_becomes_a_network(tmp_path, model, config, more):
    module = made(model, config, **more)
    module.save_pretrained(tmp_path / "model")
    result = thalia.convert(tmp_path / "model" / "model.safetensors", tmp_path / "m.entity")
    network = loom.load(tmp_path / "m.entity")
    check(module, network)
    assert result.output_bytes == (tmp_path / "m.entity").stat().st_size
    # What was read is written as the same network.
    loom.save_entity(tmp_path / "again.entity", network)
    check(module, loom.load(tmp_path / "again.entity"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_become_floats_without_loss(tmp_path, dtype):
    module = made(LlamaForCausalLM, LlamaConfig, dtype)
    module.save_pretrained(tmp_path / "model")
    thalia.convert(tmp_path / "model", tmp_path / "m.entity")
    check(module, loom.load(tmp_path / "m.entity"))


def test_a_model_in_shards_and_one_in_a_thalia_file(tmp_path):
    module = made(LlamaForCausalLM, LlamaConfig)
    module.save_pretrained(tmp_path / "model", max_shard_size="10KB")
    assert len(list((tmp_path / "model").glob("*.safetensors"))) > 1
    thalia.convert(tmp_path / "model", tmp_path / "shards.entity")
    check(module, loom.load(tmp_path / "shards.entity"))
    thalia.convert(tmp_path / "model", tmp_path / "model" / "m.thalia")
    thalia.convert(tmp_path / "model" / "m.thalia", tmp_path / "m.entity")
    assert (tmp_path / "m.entity").read_bytes() == (tmp_path / "shards.entity").read_bytes()


def test_what_no_network_of_loom_is(tmp_path):
    def refused(error, match, path="model", **options):
        with pytest.raises(error, match=match):
            thalia.convert(tmp_path / path, tmp_path / "m.entity", **options)
        assert not (tmp_path / "m.entity").exists()

    GPT2LMHeadModel(GPT2Config(vocab_size=37, n_embd=8, n_layer=1, n_head=2)).save_pretrained(tmp_path / "gpt2")
    refused(thalia.FormatError, "hidden_size", "gpt2")
    made(Gemma2ForCausalLM, Gemma2Config, head_dim=6).save_pretrained(tmp_path / "gemma")
    refused(thalia.FormatError, "hidden_act", "gemma")  # "gelu_pytorch_tanh" under another name or this one
    module = made(LlamaForCausalLM, LlamaConfig)
    module.save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_text())
    (tmp_path / "model/config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    refused(thalia.UnsupportedError, r"missing.*model\.layers\.3\.")
    (tmp_path / "model/config.json").write_text(json.dumps({**config, "sliding_window": 8}))
    refused(thalia.UnsupportedError, "lossless", lossless=True)
    (tmp_path / "model/config.json").write_text("{")
    refused(thalia.FormatError, "config.json")
    (tmp_path / "model/config.json").unlink()
    refused(thalia.UnsupportedError, "config.json")
