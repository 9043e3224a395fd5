"""The state of an Accelerator in one file."""

import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from thalia_checkpoint.accelerate import load_state, save_state
from thalia_checkpoint.torch import load, save

EXAMPLE = Path(__file__).parents[3] / "examples" / "python" / "accelerate_loop.py"


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, timeout=300)

    whole = run(tmp_path / "whole.thalia")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut.thalia", "2").returncode == 1
    resumed = run(tmp_path / "cut.thalia")
    # In front of it accelerate logs the time.
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], resumed.stderr
    assert float(whole.stdout.splitlines()[-1])
    state = load(tmp_path / "whole.thalia")
    assert len(state["optimizers"]) == len(state["dataloaders"]) == len(state["custom"]) == 1
    assert {tensor.role for tensor in thalia.open(tmp_path / "whole.thalia").tensors.values()} >= {"optimizer"}


def prepared(models=1):
    accelerator = Accelerator(cpu=True)
    accelerator.free_memory()
    made = [accelerator.prepare(torch.nn.Linear(3, 3)) for _ in range(models)]
    return accelerator, made


def test_another_number_of_parts_is_named_before_anything_changes(tmp_path):
    accelerator, _ = prepared(1)
    save_state(accelerator, tmp_path / "a.thalia")
    accelerator, models = prepared(2)
    before = [model.weight.clone() for model in models]
    with pytest.raises(thalia.UsageError, match=r"models: got 2, expected 1"):
        load_state(accelerator, tmp_path / "a.thalia")
    assert all(torch.equal(model.weight, old) for model, old in zip(models, before, strict=True))


def test_a_file_of_something_else_is_refused(tmp_path):
    accelerator, _ = prepared()
    save({"models": 3}, tmp_path / "b.thalia")
    with pytest.raises(thalia.FormatError, match="save_state"):
        load_state(accelerator, tmp_path / "b.thalia")
    with pytest.raises(thalia.MissingFileError):
        load_state(accelerator, tmp_path / "none.thalia")


def test_sharded_models_are_sent_elsewhere(tmp_path):
    accelerator, _ = prepared()
    accelerator.state.distributed_type = "FSDP"
    try:
        with pytest.raises(thalia.UnsupportedError, match="dcp"):
            save_state(accelerator, tmp_path / "c.thalia")
    finally:
        accelerator.state.distributed_type = "NO"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seedable", [False, True])
def test_shuffling_goes_on(tmp_path, seedable):
    def loader():
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=seedable))
        accelerator.free_memory()
        generator = torch.Generator().manual_seed(5)
        data = torch.utils.data.DataLoader(torch.arange(32), 8, shuffle=True, generator=generator)
        return accelerator, accelerator.prepare(data)

    def epoch(data):
        return torch.cat(list(data)).tolist()

    accelerator, data = loader()
    epoch(data)
    save_state(accelerator, tmp_path / "a.thalia")
    expected = [epoch(data), epoch(data)]
    assert expected[0] != expected[1]
    accelerator, data = loader()
    load_state(accelerator, tmp_path / "a.thalia")
    assert [epoch(data), epoch(data)] == expected


def test_random_numbers_go_on(tmp_path):
    import random

    import numpy as np

    accelerator, (model,) = prepared()
    save_state(accelerator, tmp_path / "a.thalia")
    numbers = [random.random(), np.random.rand(), torch.rand(()).item()]
    with torch.no_grad():
        model.weight.zero_()
    load_state(accelerator, tmp_path / "a.thalia")
    assert [random.random(), np.random.rand(), torch.rand(()).item()] == numbers
    assert model.weight.abs().sum() > 0


@pytest.mark.parametrize("change", [{"models": 3}, {"random": None}, {"random": [{}]}, {"random": [{"python": 1}]}, {}])
def test_what_save_state_did_not_write_is_refused(change, tmp_path):
    accelerator, _ = prepared()
    save_state(accelerator, tmp_path / "a.thalia")
    state = thalia_torch.load(tmp_path / "a.thalia")
    if change:
        state.update(change)
    else:
        del state["step"]
    thalia_torch.save(state, tmp_path / "a.thalia")
    with pytest.raises(thalia.FormatError, match="expected what"):
        load_state(accelerator, tmp_path / "a.thalia")
