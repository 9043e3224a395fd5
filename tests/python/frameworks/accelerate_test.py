"""The state of an Accelerator in one file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from ranks import on_ranks
from states import same_state
from thalia_checkpoint.accelerate import load_state, save_state
from thalia_checkpoint.torch import load, load_into, save

EXAMPLE = Path(__file__).parents[3] / "examples" / "python" / "accelerate_loop.py"
RUN_RANK = Path(__file__).parent / "run_rank.py"


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, timeout=300)

    whole = run(tmp_path / "whole.thalia")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut.thalia", "2").returncode == 1
    resumed = run(tmp_path / "cut.thalia")
    # Before it accelerate logs the time.
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], resumed.stderr
    assert float(whole.stdout.splitlines()[-1])
    state = load(tmp_path / "whole.thalia")
    assert len(state["optimizers"]) == len(state["dataloaders"]) == len(state["custom"]) == 1
    assert {tensor.role for tensor in thalia.open(tmp_path / "whole.thalia").tensors.values()} >= {"optimizer"}


def test_the_example_goes_on_where_it_died_on_two_processes(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

    def run(*arguments):
        command = [sys.executable, *launcher, RUN_RANK, EXAMPLE, *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)

    whole = run(tmp_path / "whole.thalia")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut.thalia", "2").returncode != 0
    before = thalia_torch.load(tmp_path / "cut.thalia")
    resumed = run(tmp_path / "cut.thalia")
    # Before it accelerate logs the time.
    lines = [done.stdout.splitlines()[-1] for done in (whole, resumed)]
    assert float(lines[0]) and lines[0] == lines[1], resumed.stderr
    state, cut = thalia_torch.load(tmp_path / "whole.thalia"), thalia_torch.load(tmp_path / "cut.thalia")
    assert same_state(state, cut) and not same_state(state, before)
    # Each process has random numbers of its own.
    first, second = (process["torch"] for process in state["random"])
    assert not torch.equal(first, second)


def test_a_scheduler_of_milestones_goes_on_where_it_stood(tmp_path):
    rates = []
    for steps in (3, 5):
        accelerator = Accelerator(cpu=True)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5, 5])
        model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
        if steps == 5:
            load_state(accelerator, tmp_path / "s.thalia")
        for _ in range(steps):
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        save_state(accelerator, tmp_path / "s.thalia")
    assert rates == pytest.approx([0.5, 0.05, 0.05, 0.05, *[0.0005] * 4])


def of_processes(rank, world):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    accelerator = Accelerator(cpu=True)
    assert accelerator.num_processes == world and accelerator.distributed_type == "MULTI_CPU"
    torch.manual_seed(0)
    return accelerator, accelerator.prepare(torch.nn.Linear(3, 3))


def fails_in_one(rank, world, folder):
    accelerator, model = of_processes(rank, world)
    good = f"{folder}/good.thalia"
    save_state(accelerator, good)
    # The first one cannot write.
    with pytest.raises(thalia.IoError if rank == 0 else thalia.UsageError) as caught:
        save_state(accelerator, f"{good}/inside.thalia")
    assert rank == 0 or str(caught.value).startswith("process 0: IoError: ")
    with pytest.raises(thalia.UnsupportedError if rank == 0 else thalia.UsageError, match=r"custom\.0\.a"):
        accelerator.register_for_checkpointing(Unsaveable())
        save_state(accelerator, good)
    accelerator._custom_objects.clear()
    # The second one cannot read.
    with torch.no_grad():
        model.module.weight.zero_()
    with pytest.raises(thalia.UsageError if rank == 0 else thalia.MissingFileError) as caught:
        load_state(accelerator, good if rank == 0 else f"{folder}/none.thalia")
    assert rank == 1 or str(caught.value).startswith("process 1: MissingFileError: ")
    assert not model.module.weight.any()
    # Nor load what it read.
    model.module.broken = rank == 1
    model.module.register_load_state_dict_pre_hook(refuse_if_broken)
    with pytest.raises(thalia.UsageError if rank == 0 else RuntimeError, match="process 1: Run" if rank == 0 else "no"):
        load_state(accelerator, good)
    # They are still in step.
    model.module.broken = False
    load_state(accelerator, good)
    assert model.module.weight.any()
    torch.manual_seed(rank)
    save_state(accelerator, good)
    expected = torch.rand(2)
    load_state(accelerator, good)
    assert torch.equal(torch.rand(2), expected)


class Unsaveable:
    def state_dict(self):
        return {"a": object()}

    def load_state_dict(self, state): ...


def refuse_if_broken(module, *_):
    if module.broken:
        raise RuntimeError("no")


def test_what_fails_in_one_process_fails_in_all(tmp_path):
    on_ranks(2, tmp_path, fails_in_one)
    assert [path.name for path in tmp_path.iterdir()] == ["good.thalia"]
    # One process goes on with what two saved, and with its own random numbers.
    accelerator, (model,) = prepared()
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    load_state(accelerator, tmp_path / "good.thalia")
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(0)
    assert torch.equal(model.weight, torch.nn.Linear(3, 3).weight)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))
        self.head = torch.nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight


@pytest.mark.parametrize("size", ["2KB", "1GB"])
@pytest.mark.parametrize("how", [{}, {"assign": True}, {"assign": True, "mmap": True}])
def test_weights_of_save_model_load_into_a_module(tmp_path, size, how):
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(Tied())
    accelerator.save_model(model, tmp_path, max_shard_size=size)
    assert len(list(tmp_path.glob("*.safetensors"))) == (4 if size == "2KB" else 1)
    other = Tied()
    report = load_into(other, tmp_path, **how)
    assert not report.missing and not report.unexpected
    assert same_state(other.state_dict(), model.state_dict())
    assert other.head.weight is other.embed.weight


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
