"""What torch's optimizers, schedulers and generators put into a state: all of their classes, by every way in."""

import copy
import inspect
import io
import math
import pathlib
import random
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from enum import IntEnum

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed.checkpoint
from states import same_state as same
from thalia_checkpoint import dcp
from thalia_checkpoint.brain import BrainCheckpoint
from thalia_checkpoint.mithril import Compressor
from torch.optim import lr_scheduler, swa_utils

Point = namedtuple("Point", "x y")


class Level(IntEnum):
    LOW = 1


class Settings(dict):
    """A dictionary with a name of its own."""


def saved(value, folder):
    thalia_torch.save(value, folder / "s.thalia")
    return thalia_torch.load(folder / "s.thalia")


def in_background(value, folder):
    with thalia_torch.AsyncCheckpointer(Holder(value), folder=folder / "run", every=1) as checkpoints:
        checkpoints.step(1)
    part = Holder(None)
    with thalia_torch.AsyncCheckpointer(part, folder=folder / "run", every=1) as checkpoints:
        assert checkpoints.resume() is not None
    return part.value


def by_key(value, folder):
    compressor = Compressor(storage=folder / "keys")
    compressor.save({"value": value}, key="step_1")
    return compressor.load("step_1")["value"]


def of_a_brain(value, folder):
    BrainCheckpoint.save({"regions": {"r": {"value": value}}}, folder / "b.thalia")
    return BrainCheckpoint.load(folder / "b.thalia").regions["r"]["value"]


WAYS = [saved, in_background, by_key, of_a_brain]


class Holder:
    """A stateful object of one value."""

    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


SCHEDULERS = {
    "ConstantLR": {}, "LinearLR": {}, "PolynomialLR": {}, "ReduceLROnPlateau": {},
    "LambdaLR": {"lr_lambda": lambda epoch: 0.9**epoch}, "MultiplicativeLR": {"lr_lambda": lambda epoch: 0.9},
    "StepLR": {"step_size": 2}, "MultiStepLR": {"milestones": [2, 3, 3, 7]}, "ExponentialLR": {"gamma": 0.9},
    "CosineAnnealingLR": {"T_max": 5}, "CosineAnnealingWarmRestarts": {"T_0": 2},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2}, "OneCycleLR": {"max_lr": 0.2, "total_steps": 20},
    "SequentialLR": None, "ChainedScheduler": None, "SWALR": {"swa_lr": 0.05},
}  # fmt: skip
BASES = {"LRScheduler", "_LRScheduler", "Optimizer"}


def schedulers():
    """Names of all the classes of schedulers that torch has."""
    found = inspect.getmembers(lr_scheduler, inspect.isclass) + inspect.getmembers(swa_utils, inspect.isclass)
    return sorted({name for name, cls in found if issubclass(cls, lr_scheduler.LRScheduler)} - BASES)


def optimizers():
    found = inspect.getmembers(torch.optim, inspect.isclass)
    return sorted({name for name, cls in found if issubclass(cls, torch.optim.Optimizer)} - BASES)


def sgd():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1, momentum=0.9)


def scheduler(name, optimizer):
    if name in ("SequentialLR", "ChainedScheduler"):
        parts = [lr_scheduler.ConstantLR(optimizer), lr_scheduler.MultiStepLR(optimizer, [2, 3, 3, 7])]
        if name == "ChainedScheduler":
            return lr_scheduler.ChainedScheduler(parts, optimizer)
        return lr_scheduler.SequentialLR(optimizer, parts, [3])
    cls = getattr(lr_scheduler, name, None) or getattr(swa_utils, name)
    return cls(optimizer, **SCHEDULERS[name])


def stepped(of, optimizer, steps):
    rates = []
    for _ in range(steps):
        optimizer.step()
        of.step(1.0) if isinstance(of, lr_scheduler.ReduceLROnPlateau) else of.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", schedulers())
def test_each_scheduler_goes_on_where_it_stood(name, way, tmp_path):
    optimizer = sgd()
    first = scheduler(name, optimizer)
    stepped(first, optimizer, 4)
    state, rest = copy.deepcopy(first.state_dict()), copy.deepcopy(optimizer.state_dict())
    back = way(first.state_dict(), tmp_path)
    assert same(back, state)
    other = sgd()
    again = scheduler(name, other)
    other.load_state_dict(way(rest, tmp_path))
    again.load_state_dict(back)
    assert stepped(again, other, 8) == stepped(first, optimizer, 8)


def optimizer(name):
    parameters = [torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(2, 2))]
    if name == "SparseAdam":
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        return torch.optim.SparseAdam(embedding.parameters()), lambda: embedding(torch.tensor([1, 2])).sum()
    return getattr(torch.optim, name)(parameters), lambda: sum((p * p).sum() for p in parameters)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", optimizers())
def test_the_state_of_each_optimizer_comes_back(name, way, tmp_path):
    torch.manual_seed(0)
    made, loss = optimizer(name)

    def closure():
        made.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(3):
        made.step(closure)
    state = copy.deepcopy(made.state_dict())
    back = way(made.state_dict(), tmp_path)
    assert same(back, state)
    optimizer(name)[0].load_state_dict(back)


@pytest.mark.parametrize("way", WAYS)
def test_states_of_generators_come_back(way, tmp_path):
    state = {
        "torch": torch.get_rng_state(),
        "generator": torch.Generator().manual_seed(3).get_state(),
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "bits": np.random.default_rng(3).bit_generator.state,
        "philox": np.random.Philox(3).state,
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
    }
    assert same(way(state, tmp_path), state)


def test_a_scheduler_of_milestones_goes_into_a_distributed_checkpoint(tmp_path):
    optimizer, other = sgd(), sgd()
    first, again = scheduler("MultiStepLR", optimizer), scheduler("MultiStepLR", other)
    stepped(first, optimizer, 4)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    folder, state = tmp_path / "d.dcp", {"scheduler": again, "seen": Counter(a=0)}
    writer, reader = dcp.ThaliaStorageWriter(folder), dcp.ThaliaStorageReader(folder)
    torch.distributed.checkpoint.save({"scheduler": first, "seen": Counter(a=2)}, storage_writer=writer)
    torch.distributed.checkpoint.load(state, storage_reader=reader)
    assert same(state["seen"], Counter(a=2))
    # The planner, which is torch's, makes texts of the keys too.
    assert isinstance(again.milestones, Counter) and again.milestones >= first.milestones
    assert stepped(again, other, 8) == stepped(first, optimizer, 8)


KEPT = [
    Counter({2: 1, 3: 2, "x": 0}), Counter(), deque([1, torch.ones(2), {"a": (1,)}]), deque([1, 2], maxlen=2),
    deque(maxlen=0), pathlib.Path("a/b"), io.BytesIO(b"\x00abc"), OrderedDict(b=1), b"x", {"p": [Counter("aab")]},
]  # fmt: skip
PLAIN = [
    (Point(1, torch.ones(2)), (1, torch.ones(2))), (np.str_("x"), "x"), (np.bytes_(b"x"), b"x"), (Level.LOW, 1),
    (Settings(a=1), {"a": 1}), (torch.ones(2, 2).max(0), tuple(torch.ones(2, 2).max(0))),
    (pathlib.PurePosixPath("a"), pathlib.Path("a")), (defaultdict(int, a=1), {"a": 1}), (bytearray(b"x"), b"x"),
    (torch.torch_version.TorchVersion("2.1"), "2.1"),
]  # fmt: skip


def read(value):
    """With what a stream holds, and its position."""
    return (type(value), value.getvalue(), value.tell()) if isinstance(value, io.BytesIO) else value


@pytest.mark.parametrize("way", WAYS)
def test_well_known_classes_come_back_and_others_as_what_they_are_made_of(way, tmp_path):
    for value in KEPT:
        assert same(read(way(value, tmp_path)), read(value)), value
    for value, expected in PLAIN:
        assert same(way(value, tmp_path), expected), value
    stream = io.BytesIO(b"abc")
    stream.seek(2)
    assert way(stream, tmp_path).read() == b"c"


@pytest.mark.parametrize("way", [saved, by_key])
@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (range(3), r"list\(\)"), (io.StringIO("x"), r"getvalue\(\)"),
        (memoryview(b"x"), r"tobytes\(\)"), (pathlib.Path, "type"), (math.sin, "builtin"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused_with_what_can(way, value, advice, tmp_path):
    with pytest.raises(thalia.UnsupportedError, match=advice) as caught:
        way({"deep": [value]}, tmp_path)
    assert "deep.0" in str(caught.value)


def test_files_of_torch_with_counters_are_read_and_written(tmp_path):
    optimizer = sgd()
    state = {"scheduler": scheduler("MultiStepLR", optimizer).state_dict(), "w": torch.ones(2)}
    torch.save(state, tmp_path / "a.pt")
    assert same(thalia_torch.load(tmp_path / "a.pt"), state)
    thalia.convert(tmp_path / "a.pt", tmp_path / "b.thalia")
    assert same(thalia_torch.load(tmp_path / "b.thalia"), state)
    result = thalia.convert(tmp_path / "b.thalia", tmp_path / "c.pt")
    assert not result.losses and (tmp_path / "c.pt").read_bytes() == (tmp_path / "a.pt").read_bytes()
    plainer = {"d": deque([torch.ones(2), 1]), "p": pathlib.Path("x/y"), "b": io.BytesIO(b"abc"), "w": torch.ones(2)}
    thalia_torch.save(plainer, tmp_path / "d.thalia")
    result = thalia.convert(tmp_path / "d.thalia", tmp_path / "d.pt")
    assert any("deque" in loss for loss in result.losses)
    expected = {"d": [torch.ones(2), 1], "p": "x/y", "b": b"abc", "w": torch.ones(2)}
    assert same(torch.load(tmp_path / "d.pt", weights_only=True), expected)
