"""TRL's SFTTrainer with the mixin and with the callback, of whole models and of peft's adapters."""

from pathlib import Path

import pytest

pytest.importorskip("peft")
pytest.importorskip("trl")

import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from states import same_state
from thalia_checkpoint.transformers import (
    ThaliaCallback,
    ThaliaTrainerMixin,
    from_pretrained,
    last_checkpoint,
    save_pretrained,
)
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from transformers_trainer_test import Stop, pickles
from trl import SFTConfig, SFTTrainer

WORDS = "the cat sat on a mat and the dog did not".split()


class SFT(ThaliaTrainerMixin, SFTTrainer):
    pass


WAYS = {"the mixin": (SFT, lambda: []), "the callback": (SFTTrainer, lambda: [ThaliaCallback()])}


def tokenizer():
    words = {word: i for i, word in enumerate([*dict.fromkeys(WORDS), "<pad>", "<eos>", "<unk>"])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def model():
    torch.manual_seed(0)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16, "vocab_size": 16}
    return GPT2LMHeadModel(GPT2Config(**size, bos_token_id=1, eos_token_id=1))


def adapter(**options):
    return LoraConfig(r=2, lora_dropout=0.1, target_modules=["c_attn"], fan_in_fan_out=True, **options)


def adapted(seed):
    """With random adapters: by themselves they change nothing."""
    base = model()
    torch.manual_seed(seed)
    return get_peft_model(base, adapter(init_lora_weights=False)).eval()


def train(folder, cls, callbacks=(), *, adapters, stop=0, resume=None):
    texts = [" ".join(WORDS[(i * j) % len(WORDS)] for j in range(8)) for i in range(16)]
    args = SFTConfig(str(folder), num_train_epochs=3, per_device_train_batch_size=4, save_steps=3, logging_steps=1,
                     max_length=16, use_cpu=True, bf16=False, report_to="none", disable_tqdm=True)  # fmt: skip
    trainer = cls(
        model(),
        args=args,
        train_dataset=Dataset.from_dict({"text": texts}),
        processing_class=tokenizer(),
        callbacks=[*callbacks, *([Stop(stop)] if stop else [])],
        peft_config=adapter() if adapters else None,
    )
    torch.manual_seed(3)  # dropout draws from it
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "adapters"])
def plain(request, tmp_path_factory):
    """What TRL does by itself."""
    return request.param, train(tmp_path_factory.mktemp("plain"), SFTTrainer, adapters=request.param)


@pytest.mark.parametrize("way", WAYS)
def test_a_training_goes_on_as_if_it_had_not_stopped(tmp_path, plain, way):
    adapters, whole = plain
    cls, callbacks = WAYS[way]
    train(tmp_path, cls, callbacks(), adapters=adapters, stop=7)
    last = last_checkpoint(tmp_path)
    assert last == str(tmp_path / "checkpoint-6")
    torch.manual_seed(77)
    resumed = train(tmp_path, cls, callbacks(), adapters=adapters, resume=last)
    assert len(losses(whole)) == 12
    assert losses(resumed) == losses(whole)
    assert same_state(resumed.model.state_dict(), whole.model.state_dict())
    assert pickles(tmp_path) == []
    names = {path.name for path in Path(last).iterdir()}
    weights = {"adapter_model.safetensors", "adapter_config.json"} if adapters else {"model.safetensors", "config.json"}
    assert names >= weights | {"training.thalia", "random.thalia", "training_args.json", "trainer_state.json"}
    if adapters:
        read = PeftModel.from_pretrained(model(), tmp_path / "checkpoint-12")
        assert same_state(read.state_dict(), whole.model.state_dict())
    else:
        assert same_state(AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-12").state_dict(),
                          whole.model.state_dict())  # fmt: skip


def test_an_adapter_goes_into_a_model_that_has_one(tmp_path):
    ours = adapted(1)
    ours.save_pretrained(tmp_path)
    thalia_torch.save_file(get_peft_model_state_dict(ours), tmp_path / "adapter.thalia", compression="plane_entropy")
    for name in ("adapter_model.safetensors", "adapter.thalia"):
        other = adapted(2)
        report = thalia_torch.load_into(other, tmp_path / name, rename="auto", strict=False)
        assert sorted(report.loaded) == sorted(name for name in other.state_dict() if "lora_" in name)
        assert report.unexpected == [] and same_state(other.state_dict(), ours.state_dict())
    with pytest.raises(thalia.UsageError, match=r"c_attn\.base_layer\.weight"):  # all of the base is missing
        thalia_torch.load_into(adapted(2), tmp_path / "adapter.thalia", rename="auto")


def test_weights_of_the_base_go_in_and_out_of_a_model_with_an_adapter(tmp_path):
    save_pretrained(model(), tmp_path / "base")
    other = adapted(2)
    zeros = {name: torch.zeros_like(tensor) for name, tensor in other.state_dict().items() if "lora_" not in name}
    other.load_state_dict(zeros, strict=False)
    report = thalia_torch.load_into(other, tmp_path / "base", rename="auto", strict=False)
    assert report.unexpected == [] and all("lora_" in name for name in report.missing) and len(report.missing) == 2
    assert same_state(other.state_dict(), adapted(2).state_dict())
    thalia_torch.save(other, tmp_path / "whole.thalia")
    base = model()
    base.lm_head.weight.data.zero_()
    report = thalia_torch.load_into(base, tmp_path / "whole.thalia", rename="auto", strict=False)
    assert report.missing == [] and all("lora_" in name for name in report.unexpected)
    assert same_state(base.state_dict(), model().state_dict())


def test_a_merged_model_is_a_model(tmp_path):
    ours, tokens = adapted(1), torch.arange(8)[None]
    with pytest.raises(thalia.UsageError, match=r"PeftModel.*merge_and_unload\(\) gives the whole model"):
        save_pretrained(ours, tmp_path)
    expected = ours(tokens).logits
    save_pretrained(ours.merge_and_unload(), tmp_path)
    merged = from_pretrained(AutoModelForCausalLM, tmp_path)
    assert torch.equal(AutoModelForCausalLM.from_pretrained(tmp_path)(tokens).logits, merged(tokens).logits)
    assert torch.allclose(merged(tokens).logits, expected, atol=1e-5)
    assert not torch.allclose(model().eval()(tokens).logits, expected, atol=1e-5)
