"""Objects of a training's configuration: what is kept of them, under which names, and what no file makes of a name."""

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import random
import subprocess
import sys
import types
import uuid

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import same_state as same
from thalia_checkpoint.brain import BrainCheckpoint


class Level(enum.IntEnum):
    LOW = 1


class Text(enum.StrEnum):
    FAST = "fast"


class Mode(enum.Enum):
    FAST = "fast"
    BOTH = (1, "a")


class Bits(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass
class Config:
    lr: float = 0.1
    mode: Mode = Mode.FAST
    inner: object = None
    later: int = dataclasses.field(init=False)


@dataclasses.dataclass(frozen=True)
class Key:
    a: int = 1


class Stamp(datetime.datetime):
    """As pandas has one."""


UTC = datetime.UTC
WHOLE = [
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime.datetime(2026, 1, 2, tzinfo=UTC),
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    datetime.timedelta(days=-5, microseconds=3),
    datetime.timedelta.max,
    decimal.Decimal("1.10"),
    decimal.Decimal("-Infinity"),
    uuid.UUID(int=7),
    argparse.Namespace(lr=0.1, layers=[1, (2,)], mode=None),
    types.SimpleNamespace(a=argparse.Namespace()),
    np.array(["a", "bcd", ""]),
    np.array("äö𝄞"),
    np.array([[b"a\x00b", b""]]),
    np.array(["2020-01-01", "NaT"], "M8[D]"),
    np.array([[1]], "m8[25us]"),
    np.array([], "<U3"),
    np.array([[], []], "S2"),
]
PLAIN = [
    (Level.LOW, 1),
    (Text.FAST, "fast"),
    (Mode.FAST, "fast"),
    (Mode.BOTH, (1, "a")),
    (Bits.A | Bits.B, 3),
    (Config(inner=Config()), {"lr": 0.1, "mode": "fast", "inner": {"lr": 0.1, "mode": "fast", "inner": None}}),
    (Key(2), {"a": 2}),
    (types.MappingProxyType({"a": (1,)}), {"a": (1,)}),
    (collections.UserList([1]), [1]),
    (collections.ChainMap({"a": 1}), {"a": 1}),
    (np.array([1, "a", None], object), [1, "a", None]),
    (torch.strided, "torch.strided"),
    (torch.channels_last, "torch.channels_last"),
    (Stamp(2026, 1, 2), "2026-01-02 00:00:00"),
    (np.array(["x", "yz"]).astype(">U2"), np.array(["x", "yz"])),
    ({Level.LOW: 1, Mode.FAST: 2}, {1: 1, "fast": 2}),
    ({Mode.FAST, Level.LOW}, {"fast", 1}),
    ({(Mode.FAST, 1): 2}, {("fast", 1): 2}),
]


def saved(value):
    return thalia_torch.load(thalia_torch.save({"deep": [value]}, format="thalia"))["deep"][0]


@pytest.mark.parametrize("value", WHOLE)
def test_what_every_process_knows_comes_back_as_it_was(value):
    back = saved(value)
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype and back.shape == value.shape and back.tolist() == value.tolist()
        assert back.flags.writeable
    else:
        assert back == value


@pytest.mark.parametrize(("value", "expected"), PLAIN)
def test_other_objects_come_back_as_what_they_are_made_of(value, expected):
    back = saved(value)
    assert same(back, expected) if not isinstance(expected, np.ndarray) else back.tolist() == expected.tolist()


def test_the_file_says_what_they_were(tmp_path):
    state = {
        "mode": Mode.FAST,
        "level": Level.LOW,
        "both": Mode.BOTH,
        "config": Config(),
        "args": argparse.Namespace(a=1),
    }
    thalia_torch.save(state, tmp_path / "s.thalia")
    pairs = dict(thalia.open(tmp_path / "s.thalia").metadata["thalia_checkpoint"]["tree"]["dict"])
    name = f"{__name__}.Mode"
    assert pairs["mode"] == {"value": "fast", "class": name, "name": "FAST"}
    assert pairs["level"] == {"value": 1, "class": f"{__name__}.Level", "name": "LOW"}
    assert pairs["both"] == {"tuple": [1, "a"], "class": name, "name": "BOTH"}
    assert pairs["config"]["class"] == f"{__name__}.Config" and dict(pairs["config"]["dict"])["lr"] == 0.1
    assert pairs["args"] == {"dict": [["a", 1]], "class": "argparse.Namespace"}


def test_generators_of_random_numbers_go_on_where_they_stood():
    state = {
        "torch": torch.Generator().manual_seed(3),
        "numpy": np.random.default_rng(3),
        "old": np.random.RandomState(3),
        "philox": np.random.Generator(np.random.Philox(3)),
        "mt": np.random.Generator(np.random.MT19937(3)),
        "python": random.Random(3),
    }
    back = saved(state)
    again = torch.Generator()
    again.set_state(back["torch"])
    assert torch.equal(torch.rand(4, generator=again), torch.rand(4, generator=state["torch"]))
    for name in ("numpy", "philox", "mt"):
        made = np.random.Generator(type(state[name].bit_generator)())
        made.bit_generator.state = back[name]
        assert made.random(4).tolist() == state[name].random(4).tolist()
    old = np.random.RandomState()
    old.set_state(back["old"])
    assert old.rand(4).tolist() == state["old"].rand(4).tolist()
    python = random.Random()
    python.setstate(back["python"])
    assert python.random() == state["python"].random()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({Key(): 1}, r"a key, or a member of a set, of the class .*\.Key"),
        ({1, Key()}, r"class .*\.Key"),
        ({Mode.FAST: 1, "fast": 2}, "become the same"),
        ({Mode.FAST, "fast"}, "become the same"),
        ({Mode.BOTH: 1, (1, "a"): 2}, "become the same"),
        (np.array(object(), object), "object"),
        (np.array([object()], object), "builtins.object"),
        (argparse.Namespace(f=len), "builtin"),
        (Config(inner=lambda: 0), "function"),
        (random.SystemRandom(), "SystemRandom"),
        (Config, "type"),
    ],
)
def test_what_would_not_come_back_is_refused_with_its_place(value, what):
    with pytest.raises(thalia.UnsupportedError, match=what) as caught:
        saved(value)
    assert str(caught.value).startswith("deep.0") and "; convert= may make one of these" in str(caught.value)


def test_an_object_that_holds_itself_is_refused():
    args = argparse.Namespace()
    args.me = args
    config = Config()
    config.inner = [config]
    for value in (args, config):
        with pytest.raises(thalia.UnsupportedError, match="holds itself"):
            saved(value)


def tree_file(path, tree, **arrays):
    with thalia.Writer(path, durability="none") as writer:
        writer.metadata = {"thalia_checkpoint": {"version": 1, "tree": tree}}
        for name, array in arrays.items():
            writer.add(name, array, region="r")
    return path


@pytest.mark.parametrize(
    "node",
    [
        {"class": "argparse.Namespace"},
        {"list": [], "class": "argparse.Namespace"},
        {"value": 1, "class": "types.SimpleNamespace"},
        {"dict": [[1, 2]], "class": "argparse.Namespace"},
        {"value": [1]},
        {"value": {"a": 1}},
        {"value": 1, "class": []},
        {"value": 1, "class": {}},
        {"datetime": 3},
        {"datetime": "tomorrow"},
        {"timedelta": [10**10, 0, 0]},
        {"timedelta": 1},
        {"decimal": "x"},
        {"decimal": 1},
        {"uuid": "x"},
        {"uuid": None},
        {"value": 1, "name": "x"},
        {"array": "a", "dtype": "<U2"},
        {"array": "a", "dtype": "|O8"},
        {"array": "a", "dtype": "<U99999999999"},
        {"array": "a", "dtype": 3},
        {"array": "a", "dtype": "<f4"},
        {"array": "chars", "dtype": "<U2"},
        {"array": "a", "dtype": "<M8[x]"},
        {"array": "a", "dtype": "V4"},
        {"scalar": "a", "dtype": "|S4"},
    ],
    ids=str,
)
def test_a_file_that_lies_is_refused(node, tmp_path):
    path = tree_file(
        tmp_path / "s.thalia", node, a=np.zeros((2, 3), np.int32), chars=np.full((1, 2), 0x110000, np.uint32)
    )
    with pytest.raises(thalia.FormatError, match="breaks the rules"):
        thalia_torch.load(path)


def test_a_file_imports_nothing_that_it_names(tmp_path):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    pairs = [
        ["a", {"dict": [["x", 1]], "class": "evil.Config"}],
        ["b", {"value": 1, "class": "subprocess.Popen", "name": "x"}],
    ]
    pairs += [["c", {"dict": [["__class__", 1], ["self", 2]], "class": "argparse.Namespace"}]]
    path = tree_file(tmp_path / "s.thalia", {"dict": pairs})
    code = (
        "import sys, thalia_checkpoint.torch as t; s = t.load(sys.argv[1]); "
        "assert s['a'] == {'x': 1} and s['b'] == 1 and 'evil' not in sys.modules; "
        "assert type(s['c']).__name__ == 'Namespace' and s['c'].self == 2"
    )
    subprocess.run([sys.executable, "-c", code, path], cwd=tmp_path, check=True)


def test_they_pass_through_a_file_of_torch(tmp_path):
    state = {
        "args": argparse.Namespace(a=1, w=torch.ones(2)),
        "mode": Mode.BOTH,
        "day": datetime.date(2026, 1, 2),
        "n": Level.LOW,
    }
    state |= {"took": datetime.timedelta(1, 2, 3), "names": np.array(["a", "b"]), "rng": torch.Generator()}
    thalia_torch.save(state, tmp_path / "s.thalia")
    result = thalia.convert(tmp_path / "s.thalia", tmp_path / "s.pt")
    assert any("a class of its own" in loss for loss in result.losses)
    back = torch.load(tmp_path / "s.pt", weights_only=True)
    assert same(back["args"], {"a": 1, "w": torch.ones(2)}) and back["mode"] == (1, "a") and back["n"] == 1
    assert back["day"] == "2026-01-02" and back["took"] == (1, 2, 3)
    assert back["names"].tolist() == [[97], [98]] and torch.equal(back["rng"], state["rng"].get_state())


def test_a_module_is_loaded_beside_them(tmp_path):
    model = torch.nn.Linear(2, 2)
    thalia_torch.save(
        {"model": argparse.Namespace(net=model), "names": np.array(["a"]), "at": UTC and datetime.date.max},
        tmp_path / "s.thalia",
    )
    other = torch.nn.Linear(2, 2)
    assert thalia_torch.load_into(other, tmp_path / "s.thalia", prefix="model.net.").fits
    assert torch.equal(other.weight, model.weight)


def test_the_states_of_brains_hold_them_too(tmp_path):
    value = {
        "at": datetime.date(2026, 1, 2),
        "args": argparse.Namespace(w=np.ones(2), mode=Mode.FAST),
        "took": datetime.timedelta(1),
    }
    value |= {"rng": np.random.default_rng(1), "map": types.MappingProxyType({"a": 1})}
    BrainCheckpoint.save({"regions": {"r": {"value": value}}}, tmp_path / "b.thalia")
    back = BrainCheckpoint.load(tmp_path / "b.thalia").regions["r"]["value"]
    assert back["at"] == value["at"] and back["took"] == value["took"] and back["map"] == {"a": 1}
    assert (
        type(back["args"]) is argparse.Namespace and back["args"].mode == "fast" and back["args"].w.tolist() == [1, 1]
    )
    assert back["rng"] == value["rng"].bit_generator.state
