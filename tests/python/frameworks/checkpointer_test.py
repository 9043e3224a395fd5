"""Checkpoints beside a training loop."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint._staging import Staging
from thalia_checkpoint.torch import AsyncCheckpointer, load, save


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


def test_a_checkpoint_without_a_part_is_named_before_anything_is_loaded(tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with AsyncCheckpointer(model, optimizer, folder=tmp_path, every=1) as checkpoints:
        checkpoints.step(1)
    other = torch.nn.Linear(2, 2)
    before = other.weight.clone()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(thalia.UsageError, match=r"step-1.thalia: has no scheduler; expected .* model, scheduler"):
        AsyncCheckpointer(other, scheduler=scheduler, folder=tmp_path, every=1).resume()
    assert torch.equal(other.weight, before)
    save([1], tmp_path / "step-2.thalia")
    with pytest.raises(thalia.UsageError, match=r"step-2.thalia: has no model, step, extra"):
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
    assert [path.name for path in checkpoints.checkpoints()] == ["step-15.thalia", "step-20.thalia"]
    assert sorted(os.listdir(tmp_path)) == ["step-15.thalia", "step-20.thalia"]

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
    state = load(tmp_path / "step-1.thalia")["model"]
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    net, optimizer, _ = parts()
    with AsyncCheckpointer(net, optimizer, folder=tmp_path, every=1) as checkpoints:
        checkpoints.save(1)
        checkpoints.save(2)
    path = tmp_path / "step-2.thalia"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="passed over: .*step-2"):
        assert checkpoints.resume().step == 1
    first = tmp_path / "step-1.thalia"
    first.write_bytes(first.read_bytes()[:-100])
    with pytest.warns(UserWarning), pytest.raises(thalia.FormatError, match="step-1"):
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
        state = load(tmp_path / f"step-{step}.thalia")
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
    names = os.listdir(tmp_path)
    assert names and all(name.endswith(".thalia") for name in names)
    net = torch.nn.Linear(2000, 2000)
    checkpoints = AsyncCheckpointer(net, torch.optim.AdamW(net.parameters()), folder=tmp_path, every=1)
    for path in checkpoints.checkpoints():
        assert thalia.verify(path).ok
    assert checkpoints.resume().path == checkpoints.checkpoints()[-1]
