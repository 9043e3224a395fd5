"""Models and trainings of transformers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint.transformers import from_pretrained, last_checkpoint, save_pretrained
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

EXAMPLE = Path(__file__).parents[3] / "examples" / "python" / "transformers_trainer.py"


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, EXAMPLE, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )

    whole = run(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut", "11").returncode == 1
    kept = last_checkpoint(tmp_path / "cut")
    assert kept is not None and kept.endswith("checkpoint-9")
    files = {path.name for path in Path(kept).iterdir()}
    assert {"training.thalia", "random.thalia", "model.safetensors"} <= files
    # Its arguments are all that is pickled, by the Trainer itself; nothing reads them back.
    assert not files & {"optimizer.pt", "scheduler.pt", "rng_state.pth"}
    # As a process leaves them that dies in the middle of a save.
    broken = tmp_path / "cut" / "checkpoint-12"
    broken.mkdir()
    (broken / "trainer_state.json").write_text("{")
    resumed = run(tmp_path / "cut")
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], resumed.stderr
    assert whole.stdout.splitlines()[-1].startswith("16 ")


def test_the_last_checkpoint_is_the_last_whole_one(tmp_path):
    assert last_checkpoint(tmp_path / "none") is None and last_checkpoint(tmp_path) is None
    for step in (9, 10, 100):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text("{}")
        with thalia.Writer(folder / "training.thalia") as writer:
            writer.add("w", torch.ones(10).numpy())
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-100")
    whole = (tmp_path / "checkpoint-100" / "training.thalia").read_bytes()
    (tmp_path / "checkpoint-100" / "training.thalia").write_bytes(whole[: len(whole) // 2])
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
    (tmp_path / "checkpoint-10" / "trainer_state.json").unlink()
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-9")


def models():
    gpt = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64)  # tied weights
    llama = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=64
    )  # with buffers that no file has
    return [(GPT2LMHeadModel, gpt), (LlamaForCausalLM, llama)]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("cls, config", models())
def test_a_model_comes_back(tmp_path, cls, config, mmap):
    torch.manual_seed(0)
    model = cls(config).eval()
    save_pretrained(model, tmp_path)
    tokens = torch.arange(8)[None]
    for kind in (cls, AutoModelForCausalLM):
        loaded = from_pretrained(kind, tmp_path, mmap=mmap)
        assert type(loaded) is cls
        with torch.no_grad():
            assert torch.equal(loaded(tokens).logits, model(tokens).logits)
    if cls is GPT2LMHeadModel:
        assert loaded.lm_head.weight.data_ptr() == loaded.transformer.wte.weight.data_ptr()
        assert len(thalia.open(tmp_path / "model.thalia").tensors) == len(model.state_dict()) - 1


def test_folders_with_shards_load_as_before(tmp_path):
    torch.manual_seed(0)
    model = LlamaForCausalLM(models()[1][1]).eval()
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    loaded = from_pretrained(LlamaForCausalLM, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), model.parameters(), strict=True))


def test_weights_that_do_not_fit_are_listed(tmp_path):
    cls, config = models()[0]
    save_pretrained(cls(config), tmp_path)
    other = GPT2Config(n_layer=3, n_head=2, n_embd=32, vocab_size=64)
    other.save_pretrained(tmp_path)
    with pytest.raises(thalia.UsageError, match=r"missing: .*transformer\.h\.2"):
        from_pretrained(cls, tmp_path)
