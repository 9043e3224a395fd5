"""Lightning's tests of checkpoints: every Trainer that names no CheckpointIO has ours.

Tests that look into a checkpoint call torch.load(), which reads what this package wrote as it does.
"""

import os
import tempfile

import pytest
import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch import Trainer
from thalia_checkpoint.lightning import ThaliaCheckpointIO
from thalia_checkpoint.torch import load

_init, _torch_load = Trainer.__init__, torch.load
plugin = ThaliaCheckpointIO
swapped = 0


def _init_with_ours(self, *arguments, plugins=None, **options):
    global swapped
    given = [] if plugins is None else plugins if isinstance(plugins, list) else [plugins]
    if not any(isinstance(each, CheckpointIO) for each in given):
        swapped += 1
        given = [*given, plugin()]
    return _init(self, *arguments, plugins=given, **options)


def _load(file, *arguments, **options):
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            if opened.read(4) != b"THAL":
                return _torch_load(file, *arguments, **options)
        return load(file)
    start = file.tell()
    data = file.read()
    file.seek(start)
    if data[:4] != b"THAL":
        return _torch_load(file, *arguments, **options)
    with tempfile.NamedTemporaryFile(suffix=".thalia") as copy:
        copy.write(data)
        copy.flush()
        return load(copy.name)


@pytest.fixture(autouse=True)
def _swap(monkeypatch):
    monkeypatch.setattr(Trainer, "__init__", _init_with_ours)
    monkeypatch.setattr(torch, "load", _load)


def pytest_sessionfinish(exitstatus):
    if exitstatus in (0, 1):  # the tests ran
        assert swapped > 10, f"only {swapped} trainers used this package"
