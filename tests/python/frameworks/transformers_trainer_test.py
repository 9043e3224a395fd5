"""Trainers of any class: the callback and the mixin; and folders that transformers opens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
from states import same_state
from thalia_checkpoint.transformers import (
    ThaliaCallback,
    ThaliaTrainer,
    ThaliaTrainerMixin,
    from_pretrained,
    last_checkpoint,
    save_pretrained,
)
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class OwnTrainer(Trainer):
    """Saves as SFTTrainer does: it writes a card, and lets the next class save."""

    def _save_checkpoint(self, model, trial):
        self.cards = getattr(self, "cards", 0) + 1
        super()._save_checkpoint(model, trial)


class Mixed(ThaliaTrainerMixin, OwnTrainer):
    pass


class Seq2Seq(ThaliaTrainerMixin, Seq2SeqTrainer):
    pass


class Stop(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = state.global_step == self.step


def model():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=8, vocab_size=16))


def train(folder, cls, callbacks=(), *, stop=0, resume=None, save_steps=3, kind=TrainingArguments, **more):
    rows = torch.randint(16, (16, 8), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": row, "labels": row} for row in rows]
    settings = {"num_train_epochs": 3, "per_device_train_batch_size": 4, "save_steps": save_steps, "use_cpu": True,
                "report_to": "none", "disable_tqdm": True, "logging_strategy": "no"} | more  # fmt: skip
    trainer = cls(
        model(), kind(folder, **settings), train_dataset=data, callbacks=[*callbacks, *([Stop(stop)] if stop else [])]
    )
    torch.manual_seed(3)  # dropout draws from it
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def weights(trainer):
    return trainer.model.state_dict()


def pickles(folder):
    return [path.name for path in Path(folder).rglob("*") if path.suffix in {".pt", ".pth", ".bin", ".pkl"}]


@pytest.mark.parametrize("stopped", [6, 8])  # within an epoch, and at the end of one
@pytest.mark.parametrize("save_steps", [3, 4])
def test_a_training_with_the_callback_goes_on_as_if_it_had_not_stopped(tmp_path, stopped, save_steps):
    whole = train(tmp_path / "whole", OwnTrainer, [ThaliaCallback()], save_steps=save_steps)
    assert whole.cards == 12 // save_steps
    plain = train(tmp_path / "plain", Trainer, save_steps=save_steps)
    assert same_state(weights(whole), weights(plain))  # it changes nothing of the training
    train(tmp_path / "cut", OwnTrainer, [ThaliaCallback()], stop=stopped, save_steps=save_steps)
    last = last_checkpoint(tmp_path / "cut")
    assert last.endswith(f"checkpoint-{stopped // save_steps * save_steps}")
    torch.manual_seed(77)
    resumed = train(tmp_path / "cut", OwnTrainer, [ThaliaCallback()], resume=last, save_steps=save_steps)
    assert same_state(weights(resumed), weights(whole))
    assert pickles(tmp_path / "cut") == []
    names = {path.name for path in Path(last).iterdir()}
    assert names >= {"training.thalia", "random.thalia", "training_args.json", "model.safetensors", "config.json"}
    AutoModelForCausalLM.from_pretrained(last)


def test_options_are_those_of_the_optimizers_file(tmp_path):
    train(tmp_path, Trainer, [ThaliaCallback(compression="zstd", durability="none")])
    with thalia.open(tmp_path / "checkpoint-3/training.thalia") as file:
        assert {codec for tensor in file.tensors.values() for codec in tensor.codecs} >= {"zstd"}
    state = json.loads((tmp_path / "checkpoint-3/trainer_state.json").read_text())
    assert state["stateful_callbacks"]["ThaliaCallback"]["args"] == {"compression": "zstd", "durability": "none"}
    train(tmp_path, Trainer, [ThaliaCallback(compression="zstd")], resume=str(tmp_path / "checkpoint-3"),
          restore_callback_states_from_checkpoint=True)  # fmt: skip
    assert pickles(tmp_path) == []


def test_a_checkpoint_of_a_plain_trainer_is_gone_on_from(tmp_path):
    whole = train(tmp_path / "whole", Trainer)
    train(tmp_path / "cut", Trainer, stop=6)
    before = str(tmp_path / "cut/checkpoint-6")
    assert pickles(before)
    resumed = train(tmp_path / "cut", Trainer, [ThaliaCallback()], resume=before)
    assert same_state(weights(resumed), weights(whole))
    assert pickles(before) and not pickles(tmp_path / "cut/checkpoint-9")


def test_a_checkpoint_elsewhere_is_named(tmp_path):
    whole = train(tmp_path / "whole", Trainer, [ThaliaCallback()])
    train(tmp_path / "cut", Trainer, [ThaliaCallback()], stop=6)
    there = str(tmp_path / "cut/checkpoint-6")
    with pytest.raises(thalia.UsageError, match=r"neither training\.thalia nor optimizer\.pt; ThaliaCallback\(check"):
        train(tmp_path / "new", Trainer, [ThaliaCallback()], resume=there)
    resumed = train(tmp_path / "new", Trainer, [ThaliaCallback(checkpoint=there)], resume=there)
    assert same_state(weights(resumed), weights(whole))


def test_a_save_that_dies_leaves_no_checkpoint(tmp_path):
    code = (
        f"import sys, os; sys.path.insert(0, {str(Path(__file__).parent)!r}); import transformers_trainer_test as t; "
        "from thalia_checkpoint import _trainer_callback as c; save = c.save_random; "
        "c.save_random = lambda args, folder: os._exit(9) if str(folder).endswith('-6') else save(args, folder); "
        f"t.train({str(tmp_path)!r}, t.Trainer, [t.ThaliaCallback()])"
    )
    for _ in range(2):  # also where an older one of the same step is saved anew
        assert subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ}).returncode == 9
        assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-3")
        assert (tmp_path / "checkpoint-6/training.thalia").exists()
        (tmp_path / "checkpoint-6/trainer_state.json").write_text("{}")
        (tmp_path / "checkpoint-3/trainer_state.json").touch()


def test_what_a_callback_cannot_save_is_refused(tmp_path):
    callback = ThaliaCallback()
    state = type("State", (), {"is_hyper_param_search": False, "global_step": 0})
    for name in ("deepspeed", "fsdp", "fp16"):
        args = type("Args", (), {"deepspeed": None, "fsdp": "", "fp16": False, name: "yes"})
        with pytest.raises(thalia.UnsupportedError, match=rf"{name}: a callback cannot save this training"):
            callback.on_train_begin(args, state, None)
    with pytest.raises(TypeError, match="'durabilty', did you mean 'durability'"):
        ThaliaCallback(durabilty="none")


@pytest.mark.parametrize(
    "cls, callbacks, kind",
    [
        (Mixed, list, TrainingArguments),
        (Seq2Seq, list, Seq2SeqTrainingArguments),
        (Seq2SeqTrainer, lambda: [ThaliaCallback()], Seq2SeqTrainingArguments),
    ],
)
def test_both_serve_any_trainer(tmp_path, cls, callbacks, kind):
    logged = {"kind": kind, "logging_strategy": "steps", "logging_steps": 1}
    whole = train(tmp_path / "whole", cls, callbacks(), **logged)
    train(tmp_path / "cut", cls, callbacks(), **logged, stop=7)
    last = last_checkpoint(tmp_path / "cut")
    assert last == str(tmp_path / "cut/checkpoint-6")
    resumed = train(tmp_path / "cut", cls, callbacks(), **logged, resume=last)
    assert same_state(weights(resumed), weights(whole))
    losses = [[entry["loss"] for entry in each.state.log_history if "loss" in entry] for each in (whole, resumed)]
    assert len(losses[0]) == 12 and losses[1] == losses[0]
    assert pickles(tmp_path) == []
    assert getattr(whole, "cards", 4) == 4
    assert issubclass(ThaliaTrainer, ThaliaTrainerMixin)


def test_a_folder_opens_in_plain_transformers(tmp_path):
    ours = model()
    save_pretrained(ours, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "generation_config.json", "model.safetensors"}
    for load in (AutoModelForCausalLM.from_pretrained, lambda folder: from_pretrained(AutoModelForCausalLM, folder)):
        assert same_state(load(tmp_path).state_dict(), ours.state_dict())


@pytest.mark.parametrize("option", [{"compression": "zstd"}, {"checksum": "sha256"}, {"leaves": "sha256"}])
def test_what_safetensors_files_cannot_hold_is_refused(tmp_path, option):
    (name,) = option
    with pytest.raises(
        thalia.UsageError, match=rf"{name}: got .*, which safetensors files cannot hold; format='thalia'"
    ):
        save_pretrained(model(), tmp_path / "folder", **option)
    assert not (tmp_path / "folder").exists()
    save_pretrained(model(), tmp_path / "folder", **option, format="thalia")
    save_pretrained(model(), tmp_path / "other", compression=None, durability="none", sha256=True)


def test_from_pretrained_takes_what_transformers_does(tmp_path):
    save_pretrained(model(), tmp_path)
    changed, info = from_pretrained(
        AutoModelForCausalLM, tmp_path, attn_implementation="eager", resid_pdrop=0.5, output_loading_info=True
    )
    assert changed.config.resid_pdrop == 0.5 and changed.config._attn_implementation == "eager"
    assert changed.transformer.h[0].attn.resid_dropout.p == 0.5
    assert not info["missing_keys"]
    assert from_pretrained(GPT2LMHeadModel, tmp_path, torch_dtype=torch.float64).dtype == torch.float64
    wider = GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=8, vocab_size=20)
    with pytest.raises(thalia.UsageError, match="mismatched"):
        from_pretrained(AutoModelForCausalLM, tmp_path, config=wider)
    new = from_pretrained(AutoModelForCausalLM, tmp_path, config=wider, ignore_mismatched_sizes=True)
    assert new.config.vocab_size == 20 and new.transformer.wte.weight.shape == (20, 16)
    base = from_pretrained(AutoModel, tmp_path, device_map="cpu", mmap=True)
    assert same_state(base.state_dict(), model().transformer.state_dict())


@pytest.mark.parametrize("name, value", [("state_dict", {}), ("subfolder", "x"), ("gguf_file", "f.gguf")])
def test_where_weights_are_is_the_folder_alone(tmp_path, name, value):
    save_pretrained(model(), tmp_path)
    with pytest.raises(thalia.UsageError, match=rf"{name}: got .*, but the weights are those of the folder"):
        from_pretrained(AutoModelForCausalLM, tmp_path, **{name: value})
