"""Checkpoints beside a training loop."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint import store
from thalia_checkpoint.torch import AsyncCheckpointer, load, save
from thalia_checkpoint.torch._staging import Staging


def parts():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    return net, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.5)


def train(net, optimizer, scheduler, step):
    generator = torch.Generator().manual_seed(step)
    loss = (net(torch.randn(16, 8, generator=generator)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def file_of(folder, step):
    return folder / f"train/checkpoints/ckpt_train_step{step:08}.thalia"


def steps_in(folder):
    return [entry.step for entry in store.Run(folder).list()]


def test_a_checkpoint_without_a_part_is_named_before_anything_is_loaded(tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with AsyncCheckpointer(model, optimizer, folder=tmp_path, every=1) as checkpoints:
        checkpoints.step(1)
    other = torch.nn.Linear(2, 2)
    before = other.weight.clone()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(thalia.UsageError, match=r"step00000001.thalia: has no scheduler; expected .* model, scheduler"):
        AsyncCheckpointer(other, scheduler=scheduler, folder=tmp_path, every=1).resume()
    assert torch.equal(other.weight, before)
    with store.RunWriter(tmp_path) as run, run.new_checkpoint(2) as writer:
        writer.add("a/b", np.zeros(3))
    with pytest.raises(thalia.UsageError, match=r"step00000002.thalia: has no model, step, extra"):
        AsyncCheckpointer(other, folder=tmp_path, every=1).resume()


def test_a_run_that_died_goes_on_bit_for_bit(tmp_path):
    expected = parts()
    for step in range(1, 31):
        train(*expected, step)

    died = parts()
    with AsyncCheckpointer(*died[:2], scheduler=died[2], folder=tmp_path, every=5, keep=2) as checkpoints:
        assert checkpoints.resume() is None
        for step in range(1, 24):
            train(*died, step)
            handle = checkpoints.step(step, note=f"after {step}")
            assert (handle is not None) == (step % 5 == 0)
    assert checkpoints.checkpoints() == [file_of(tmp_path, step) for step in (15, 20)]
    assert steps_in(tmp_path) == [15, 20]

    again = parts()
    with AsyncCheckpointer(*again[:2], scheduler=again[2], folder=tmp_path, every=5) as checkpoints:
        resumed = checkpoints.resume()
        assert resumed.step == 20 and resumed.extra == {"note": "after 20"}
        for step in range(resumed.step + 1, 31):
            train(*again, step)
    for a, b in zip(again[0].parameters(), expected[0].parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_state_is_that_of_the_call(tmp_path):
    net, optimizer, _ = parts()
    checkpoints = AsyncCheckpointer(net, optimizer, folder=tmp_path, every=1, when_busy="queue")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    checkpoints.save(1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    checkpoints.wait()
    state = load(file_of(tmp_path, 1))["model"]
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    net, optimizer, _ = parts()
    with AsyncCheckpointer(net, optimizer, folder=tmp_path, every=1) as checkpoints:
        checkpoints.save(1)
        checkpoints.save(2)
    path = file_of(tmp_path, 2)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="passed over: .*step00000002") as warned:
        assert checkpoints.resume().step == 1
    assert {each.filename for each in warned} == {__file__}
    first = file_of(tmp_path, 1)
    first.write_bytes(first.read_bytes()[:-100])
    with pytest.raises(thalia.IntegrityError, match=r"step00000001.*step00000002"):
        checkpoints.resume()


def test_a_staged_state_is_that_of_the_call(tmp_path, monkeypatch):
    # As tensors of CUDA take it: copies of all that is written, which are there once the wait is over.
    waited = []
    monkeypatch.setattr(Staging, "takes", staticmethod(lambda tensor: True))
    monkeypatch.setattr(Staging, "wait", lambda self: waited.append(self))
    net, optimizer, _ = parts()
    net.tied = net[0].weight
    numbers = np.arange(4.0)
    with AsyncCheckpointer(net, optimizer, folder=tmp_path, every=1, when_busy="queue") as checkpoints:
        kept = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        for step in (1, 2):
            handle = checkpoints.save(step, numbers=numbers, view=net[0].weight.T)
            with torch.no_grad():
                for tensor in net.parameters():
                    tensor += 1
            numbers += 1
    assert handle.done and len(waited) == 2 and waited[0] is not waited[1]
    for step in (1, 2):
        state = load(file_of(tmp_path, step))
        assert (state["extra"]["numbers"] == np.arange(4.0) + step - 1).all()
        for name, tensor in state["model"].items():
            expected = kept[name] + (step - 1) if kept[name].is_floating_point() else kept[name]
            torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-5)
        assert (
            state["extra"]["view"].untyped_storage().data_ptr() == state["model"]["tied"].untyped_storage().data_ptr()
        )


def test_a_failed_save_is_told_at_the_next_step(tmp_path):
    net, optimizer, _ = parts()
    checkpoints = AsyncCheckpointer(net, optimizer, folder=tmp_path, every=1, replace=False)
    checkpoints.save(1)
    checkpoints.wait()
    with pytest.raises(thalia.ExistsError):
        checkpoints.save(1)
    for bad in ({"every": 0}, {"every": 1, "keep": 0}):
        with pytest.raises(thalia.UsageError, match="1 or more"):
            AsyncCheckpointer(net, optimizer, folder=tmp_path, **bad)


def test_a_killed_process_leaves_whole_checkpoints(tmp_path):
    code = f"""
        import os, signal, threading, torch
        from thalia_checkpoint.torch import AsyncCheckpointer
        net = torch.nn.Linear(2000, 2000)
        optimizer = torch.optim.AdamW(net.parameters())
        checkpoints = AsyncCheckpointer(net, optimizer, folder={str(tmp_path)!r}, every=1, keep=2)
        for step in range(1, 100):
            net(torch.ones(1, 2000)).sum().backward()
            optimizer.step()
            checkpoints.step(step)
            if step == 4:
                threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert died.returncode == -9
    assert steps_in(tmp_path)
    net = torch.nn.Linear(2000, 2000)
    checkpoints = AsyncCheckpointer(net, torch.optim.AdamW(net.parameters()), folder=tmp_path, every=1)
    for path in checkpoints.checkpoints():
        assert thalia.verify(path).ok
    assert checkpoints.resume().path == checkpoints.checkpoints()[-1]


class Counting:
    """A state of one number, which a damaged byte makes another."""

    def __init__(self, value=0):
        self.weight = torch.full((1000,), float(value))

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        self.weight = state["weight"]


def train_to(folder, last, every=10, first=1, keep=2, **options):
    """What a run that begins at a step does; it resumes nothing."""
    state = Counting()
    with AsyncCheckpointer(state, folder=folder, every=every, keep=keep, **options) as checkpoints:
        for step in range(first, last + 1):
            state.weight.fill_(step)
            checkpoints.step(step)


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_new_run_in_the_same_folder_keeps_its_own(tmp_path):
    train_to(tmp_path, 100)
    assert steps_in(tmp_path) == [90, 100]
    with pytest.warns(UserWarning, match="goes back from step 100 to 10") as warned:
        train_to(tmp_path, 50)
    assert {each.filename for each in warned} == {__file__}
    assert steps_in(tmp_path) == [40, 50]
    state = Counting()
    assert AsyncCheckpointer(state, folder=tmp_path, every=1).resume().step == 50
    assert (state.weight == 50).all()


def test_a_run_that_went_on_from_an_older_one_is_not_lost(tmp_path):
    train_to(tmp_path, 30)
    damage(file_of(tmp_path, 30))
    state = Counting()
    with AsyncCheckpointer(state, folder=tmp_path, every=1, keep=1) as checkpoints:
        with pytest.warns(UserWarning, match="passed over.*step00000030"):
            assert checkpoints.resume().step == 20
        assert checkpoints.checkpoints() == [file_of(tmp_path, step) for step in (30, 20)]
        state.weight.fill_(21)
        checkpoints.step(21)
    assert steps_in(tmp_path) == [21]
    assert AsyncCheckpointer(state, folder=tmp_path, every=1).resume().step == 21


def test_the_best_stays_and_one_that_is_damaged_does_not_count(tmp_path):
    state = Counting()
    with AsyncCheckpointer(state, folder=tmp_path, every=1, keep=2, metric=("loss", "min")) as checkpoints:
        for step, loss in enumerate([3.0, 1.0, 2.0, float("nan"), 2.0], 1):
            checkpoints.step(step, metric=loss)
    run = store.Run(tmp_path)
    assert steps_in(tmp_path) == [2, 5] and run.best().step == 2 and run.latest().metric == 2.0
    with AsyncCheckpointer(state, folder=tmp_path, every=1, keep=3) as checkpoints:
        checkpoints.step(6, metric=5.0)
        checkpoints.wait()
        damage(file_of(tmp_path, 6))
        checkpoints.step(7)
        with pytest.warns(UserWarning, match="damaged.*step00000006"):
            checkpoints.wait()
    assert steps_in(tmp_path) == [2, 5, 6, 7]
    # What it was told at first holds where nothing is said.
    assert run.config["phases"][0]["metric"]["name"] == "loss"


def test_one_process_uses_a_folder(tmp_path):
    code = f"""
        import torch
        from thalia_checkpoint.torch import AsyncCheckpointer
        AsyncCheckpointer(torch.nn.Linear(2, 2), folder={str(tmp_path)!r}, every=1)
    """
    with AsyncCheckpointer(Counting(), folder=tmp_path, every=1) as checkpoints:
        told = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
        )
        assert told.returncode == 1 and f"process {os.getpid()} " in told.stderr
        checkpoints.step(1)
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_files_of_an_earlier_version_are_told_of_and_left(tmp_path):
    save({"model": {}, "step": 3, "extra": {}}, tmp_path / "step-3.thalia")
    with pytest.warns(UserWarning, match=r"step-3.thalia .*neither resumed from nor removed"):
        checkpoints = AsyncCheckpointer(Counting(), folder=tmp_path, every=1, keep=1)
    with checkpoints:
        assert checkpoints.resume() is None
        checkpoints.step(1)
    assert (tmp_path / "step-3.thalia").exists() and steps_in(tmp_path) == [1]


def test_a_save_that_nobody_waits_for_is_there_at_the_end(tmp_path):
    code = f"""
        import torch
        from thalia_checkpoint.torch import AsyncCheckpointer
        model, folder = torch.nn.Linear(900, 900), {str(tmp_path)!r}
        checkpoints = AsyncCheckpointer(model, folder=folder, every=1, keep=2, when_busy="queue")
        for step in range(1, 6):
            checkpoints.step(step)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert steps_in(tmp_path) == [4, 5] and store.Run(tmp_path).latest().step == 5


@pytest.mark.parametrize("when_busy", ["wait", "queue", "replace", "skip"])
def test_saves_that_follow_each_other_fast(tmp_path, when_busy):
    state = Counting()
    state.weight = torch.zeros(1 << 20)
    with AsyncCheckpointer(state, folder=tmp_path, every=1, keep=1, when_busy=when_busy) as checkpoints:
        handles = []
        for step in range(1, 9):
            state.weight.fill_(step)
            handles.append(checkpoints.step(step))
    saved = [step for step, handle in enumerate(handles, 1) if handle.error is None and not handle.skipped]
    assert steps_in(tmp_path) == saved[-1:]
    assert AsyncCheckpointer(state, folder=tmp_path, every=1).resume().step == saved[-1]
    assert (state.weight == saved[-1]).all()
    if when_busy in ("wait", "queue"):
        assert saved == list(range(1, 9)) and handles[0].wait().entry.step == 1


def test_a_step_that_is_saved_again_takes_its_place(tmp_path):
    train_to(tmp_path, 20)
    with pytest.warns(UserWarning, match="goes back"):
        train_to(tmp_path, 10, keep=5)
    assert steps_in(tmp_path) == [10, 20]
    assert store.Run(tmp_path).latest().step == 10


class Stateful:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (object(), r"scheduler\.value: cannot save builtins\.object"),
        ([torch.eye(3).to_sparse()], r"scheduler\.value\.0: got a tensor .*sparse"),
        ({"f": lambda: 0}, r"scheduler\.value\.f: cannot save .*function"),
    ],
)
def test_what_cannot_be_saved_is_told_before_the_first_step(value, what, tmp_path):
    net = torch.nn.Linear(2, 2)
    with pytest.raises(thalia.UnsupportedError, match=what):
        AsyncCheckpointer(net, scheduler=Stateful(value), folder=tmp_path / "run", every=10)
    assert not (tmp_path / "run").exists()


def test_a_state_that_is_not_there_yet_is_no_error(tmp_path):
    with torch.device("meta"):
        on_meta = torch.nn.Linear(2, 2)
    lazy = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.LazyBatchNorm1d())
    with AsyncCheckpointer(on_meta, scheduler=lazy, folder=tmp_path, every=1) as checkpoints:
        lazy(torch.ones(2, 3))
        on_meta.to_empty(device="cpu")
        checkpoints.step(1)
    assert set(load(checkpoints.checkpoints()[0])["scheduler"]) == set(lazy.state_dict())


def test_convert_gives_what_is_saved_of_an_object(tmp_path):
    class Schedule:
        factor = 0.5

    def convert(value):
        return value.factor if isinstance(value, Schedule) else None

    part = Stateful(Schedule())
    with AsyncCheckpointer(part, folder=tmp_path, every=1, convert=convert) as checkpoints:
        checkpoints.step(1, extra=[Schedule()])
    with AsyncCheckpointer(part, folder=tmp_path, every=1, convert=convert) as checkpoints:
        assert checkpoints.resume().extra == {"extra": [0.5]}
    assert part.value == 0.5
