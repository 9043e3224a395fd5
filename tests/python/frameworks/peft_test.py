"""Adapters that this package writes, loaded by peft: the model answers as the one that was trained."""

import warnings

import pytest

pytest.importorskip("peft")

import thalia_checkpoint as thalia
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

SIZE = {"vocab_size": 64, "bos_token_id": 1, "eos_token_id": 1}
TOKENS = torch.arange(48).reshape(3, 16) % 61


def llama():
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(**SIZE, **sizes, **heads, tie_word_embeddings=False))


def gpt2():
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(**SIZE, **sizes, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def trained(model, ranks):
    """A few steps of layers whose changes have these ranks, merged into the weights."""
    layers = [name for name, layer in model.named_modules() if type(layer).__name__ in ("Linear", "Conv1D")]
    chosen = [name for name in layers if any(part in name for part in ranks)]
    pattern = {name: rank for name in chosen for part, rank in ranks.items() if part in name}
    config = LoraConfig(r=1, lora_alpha=1, target_modules=chosen, rank_pattern=pattern, alpha_pattern=pattern)
    config.fan_in_fan_out = isinstance(model, GPT2LMHeadModel)
    adapted = get_peft_model(model, config)
    optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=2e-2)
    for _ in range(4):
        adapted(input_ids=TOKENS, labels=TOKENS).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return adapted.merge_and_unload().eval(), pattern


def logits(model):
    with torch.no_grad():
        return model(input_ids=TOKENS).logits.float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("make", "ranks"),
    [(llama, {"0.self_attn": 4, "1.mlp": 2, "lm_head": 3}), (gpt2, {"0.attn": 4, "1.mlp": 2})],
)
def test_peft_loads_what_changed(tmp_path, make, ranks, dtype):
    torch.manual_seed(0)
    model = make().to(dtype).eval()
    model.save_pretrained(tmp_path / "base")
    before = logits(model)
    model, pattern = trained(model, ranks)
    model.save_pretrained(tmp_path / "new")
    wanted = logits(model)

    most = max(ranks.values())
    result = thalia.lora_adapter(tmp_path / "base", tmp_path / "new", tmp_path / "adapter", max_rank=most)
    assert {matrix.name.removesuffix(".weight") for matrix in result.matrices} == set(pattern)
    if dtype == torch.float32:
        assert {matrix.name.removesuffix(".weight"): matrix.rank for matrix in result.matrices} == pattern

    base = type(model).from_pretrained(tmp_path / "base", dtype=dtype).eval()
    with warnings.catch_warnings():
        # Keys that are missing or not expected, and layers of another kind than the configuration says.
        warnings.filterwarnings("error", message=".*(keys|fan_in_fan_out).*")
        adapted = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    assert adapted.peft_config["default"].base_model_name_or_path == str(tmp_path / "base")
    change = (wanted - before).norm()
    assert (logits(adapted) - wanted).norm() / change < (1e-5 if dtype == torch.float32 else 2e-2)
    merged = adapted.merge_and_unload()
    for name, weight in model.state_dict().items():
        largest = weight.float().abs().max()
        error = (merged.state_dict()[name].float() - weight.float()).abs().max()
        assert error <= largest * (1e-6 if dtype == torch.float32 else 2**-7), name
