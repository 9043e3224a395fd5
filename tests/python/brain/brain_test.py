"""Brains of numpy arrays: the API of the source specification, and files of the original program."""

import dataclasses
import enum
import json
import math
import shutil
import subprocess
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from thalia_checkpoint.brain import (
    PRECISION_POLICIES,
    BrainCheckpoint,
    BrainRegion,
    LazyRegion,
    PrecisionPolicy,
    compress_checkpoint,
)

ORIGINAL = Path(__file__).resolve().parents[2] / "data" / "v01"


@dataclasses.dataclass(frozen=True)
class Counted:
    start: int
    seen: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Trace:
    values: np.ndarray
    tau: float


class Phase(enum.Enum):
    SLEEP = "sleep"


def same(a, b):
    """Whether two states are equal bit for bit, the kinds of their containers included.

    A region that was loaded is a dictionary."""
    a, b = (x.copy() if isinstance(x, BrainRegion) else x for x in (a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a):
        return same(vars(a), vars(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def state(step=0, n=40):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(n, 30)).astype(np.float32)
    weights[: step + 1] += np.float32(1e-3) * step
    eligibility = np.zeros((n, 30), np.float32)
    eligibility[3, 4] = 0.5
    return {
        "regions": {
            "cortex": {
                "config": {"n_input": 30, "lr": 1e-3, "sizes": [1, 2]},
                "weights": {"w_ff": weights, "missing": None},
                "neuron_state": {"membrane": np.full(n, -65.0), "spikes": np.arange(n) % 3 == 0},
                "learning_state": {"eligibility": eligibility, "stp": {"u": rng.random(n)}, "tau": 20.0},
                "homeostatic": {"thresholds": np.ones(n, np.float32)},
                "oscillator_state": {"theta": {"phase": 0.25 * step, "cycles": step}},
            },
            "striatum": {
                "weights": {"d1": rng.normal(size=(4, 5)).astype(np.float16)},
                "votes": [np.arange(3), {"a": 1}],
            },
        },
        "pathways": {"cortex_to_striatum": {"weights": {"w": np.ones((4, n), np.float32)}}},
        "neuromodulators": {"dopamine": 0.5},
        "training_steps": 100 * step,
        "replay": [{"state": np.arange(5), "reward": math.inf}, (1, 2)],
    }


class Brain:
    def __init__(self, members):
        self.members = members

    def get_full_state(self):
        return self.members

    def load_full_state(self, members):
        self.members = members


def loaded(path, **options):
    """Without what loading adds."""
    found = dict(BrainCheckpoint.load(path, **options))
    found.pop("metadata")
    return found


@pytest.mark.parametrize("name", ["brain.thalia", "brain.thalia.zst", "brain.thalia.lz4"])
@pytest.mark.parametrize("compression", [None, True])
def test_a_state_comes_back_bit_for_bit(tmp_path, name, compression):
    path = tmp_path / "new" / name
    brain = Brain(state(7))
    summary = BrainCheckpoint.save(brain, path, metadata={"stage": 3, "best_loss": math.nan}, compression=compression)
    assert same(loaded(path), state(7))
    assert summary["num_regions"] == 2 and summary["num_pathways"] == 1
    assert summary["total_neurons"] == 40 and summary["file_size"] == path.stat().st_size
    assert summary["precision_stats"]["fp16"] == {
        "count": 1,
        "bytes": 40,
        "mb": 40 / 2**20,
        "percent": pytest.approx(0.6, 0.1),
    }
    other = Brain(None)
    assert BrainCheckpoint.load(path, into=other) is other and other.members.training_steps == 700
    assert math.isnan(other.members.metadata["best_loss"]) and other.members["metadata"]["stage"] == 3
    assert BrainCheckpoint.validate(path) == (True, [])
    assert [entry.name for entry in path.parent.iterdir()] == [name]  # and nothing else


def test_arrays_of_texts_and_times_come_back(path, tmp_path):
    members = {
        "words": np.array([["a", "bcd"], ["", "äö𝄞"]]),
        "bytes": np.array([b"a\x00b", b""]),
        "times": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "span": np.timedelta64(25, "us"),
        "none": np.array([], "<U3"),
        "deep": [{"names": (np.array("x"),)}],
    }
    brain = {"regions": {"a": {"weights": {"w": np.ones(3)}, **members}}, "labels": np.array(["up", "down"])}
    BrainCheckpoint.save(brain, path)
    assert same(loaded(path), brain)
    lazy = BrainCheckpoint.load(path, lazy=True)
    assert same(lazy.regions["a"]["words"], members["words"])
    objects = {"a": {"names": np.array([["x"], ["yz"]], object)}}
    BrainCheckpoint.save(objects, tmp_path / "objects.thalia")
    assert BrainCheckpoint.load(tmp_path / "objects.thalia")["a"] == {"names": [["x"], ["yz"]]}
    with pytest.raises(thalia.UnsupportedError, match=r"a\.names\[0\]: cannot save builtins\.object"):
        BrainCheckpoint.save({"a": {"names": np.array([object()])}}, path)
    brain["regions"]["a"]["words"] = np.array([["a", "bcd"], ["", "other"]])
    BrainCheckpoint.save_delta(brain, tmp_path / "delta.thalia", path)
    assert same(loaded(tmp_path / "delta.thalia"), brain)


def test_what_python_has_comes_back(path):
    brain = {
        "regions": {
            "a": {
                "int keys": {1: np.arange(3), (2, "x"): None},
                "tuple": (np.float32(1.5), np.int8(-3), 1 << 80, -(1 << 53)),
                "set": {3, 1},
                "ordered": OrderedDict(b=1, a=np.zeros(2)),
                "bytes": b"\x00\xff",
                "complex": 1 - 2j,
                "numbers": [math.nan, -math.inf, -0.0, 1e-320],
                "_type": "tensor",
                "escaped": {"_type": "python", "_kind": "x"},
                "dots.and/slashes": {"": np.ones(1), "a.b": np.ones(2), "a": {"b": np.ones(3)}},
                "trace": Trace(np.arange(4.0), 2.0),
                "neuromodulators": {"dopamine": 1 << 70, "ach": math.nan, "on": True},
                "empty": [{}, [], (), np.zeros((0, 3))],
            },
            "b": {},
            "a" * 400: {"weights": {"é" * 300: np.ones(2)}},
        },
        "pathways": {},
    }
    BrainCheckpoint.save(brain, path)
    assert same(loaded(path, classes=[Trace]), brain)
    assert same(loaded(path)["regions"]["a"]["trace"], {"values": np.arange(4.0), "tau": 2.0})
    BrainCheckpoint.save({"phase": Phase.SLEEP}, path)
    assert BrainCheckpoint.load(path) == {"phase": "sleep"}


def test_fields_that_a_dataclass_makes_itself_come_back(path):
    counted = Counted(3)
    object.__setattr__(counted, "seen", 7)
    BrainCheckpoint.save({"r": {"counted": counted}}, path)
    assert BrainCheckpoint.load(path, classes=[Counted])["r"]["counted"] == counted
    assert BrainCheckpoint.load(path)["r"]["counted"] == {"start": 3, "seen": 7}


def test_a_plain_dictionary_of_nested_arrays(path):
    plain = {
        "step": 3,
        "model": {"w_ff": np.ones((3, 3)), "bias": np.zeros(3)},
        "optimizer": {"state": {0: {"sum": np.ones(3)}}, "param_groups": [{"lr": 0.1}]},
        "weights": np.arange(4.0),
        "config": {"depth": 2},
        "brain:state": {"x": 1},
    }
    BrainCheckpoint.save(plain, path)
    assert same(dict(BrainCheckpoint.load(path)), plain)
    assert list(BrainCheckpoint.load(path, regions=["model"])) == ["step", "model", "weights", "brain:state"]
    with thalia.open(path) as file:
        assert file["optimizer"]["0.sum"].role == "optimizer"
        assert file["model"]["bias"].role == "bias"


nested = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
    | st.binary(max_size=4)
    | hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int8, np.uint64, np.bool_, np.complex64]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12),
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6), inner, max_size=4
        )
        | st.dictionaries(st.integers() | st.text("_type", max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, nested, max_size=5), st.booleans())
def test_any_state_comes_back(tmp_path_factory, members, in_regions):
    path = tmp_path_factory.mktemp("any") / "brain.thalia"
    brain = {"regions": {"r": members}, "other": members} if in_regions else members
    if not in_regions and "regions" in members:
        return
    BrainCheckpoint.save(brain, path, durability="none")
    found = dict(BrainCheckpoint.load(path))
    if in_regions:
        del found["metadata"]
    assert same(found, brain)
    assert BrainCheckpoint.validate(path).valid


def test_regions_alone_and_lazily(path):
    BrainCheckpoint.save(state(), path)
    some = BrainCheckpoint.load(path, regions=["striatum"])
    assert (
        list(some.regions) == ["striatum"] and some["pathways"] == {} and some["neuromodulators"] == {"dopamine": 0.5}
    )
    assert list(BrainCheckpoint.load(path, regions=["pathway:cortex_to_striatum"]).pathways) == ["cortex_to_striatum"]
    lazy = BrainCheckpoint.load(path, regions=["striatum"], lazy=True)
    path.unlink()  # what is open stays there
    cortex = lazy.regions["cortex"]
    assert type(lazy.regions["striatum"]) is BrainRegion
    assert isinstance(cortex, LazyRegion) and not cortex.is_loaded
    assert same(dict(cortex), state()["regions"]["cortex"]) and cortex.is_loaded
    cortex["new"] = 1
    assert "new" in cortex and cortex["weights"] is cortex["weights"]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("brain", [state(1), {"r": {"w": np.ones((3, 3))}, "step": 1}])
def test_a_state_that_was_loaded_is_saved_like_any_other(path, brain, lazy):
    event = {"step": 1, "region": "cortex", "neurons_added": 2, "type": "growth"}
    BrainCheckpoint.save(brain, path, metadata={"experiment": "x", "growth_history": [event]})
    # Over the file that it is read from, and as a part of another state.
    found = BrainCheckpoint.load(path, lazy=lazy)
    BrainCheckpoint.save(found, path)
    again = BrainCheckpoint.load(path)
    assert same({key: value for key, value in again.items() if key != "metadata"}, brain)
    assert again.metadata["experiment"] == "x" and BrainCheckpoint.info(path)["growth_history"] == [event]
    BrainCheckpoint.save({"ensemble": {"first": BrainCheckpoint.load(path, lazy=lazy)}}, path)
    first = BrainCheckpoint.load(path)["ensemble"]["first"]
    assert same({key: value for key, value in first.items() if key != "metadata"}, brain)


@pytest.mark.parametrize("steps", [np.int64(7), np.uint8(7), np.array(7)])
def test_training_steps_of_any_kind_are_the_headers(path, steps):
    BrainCheckpoint.save({**state(), "training_steps": steps}, path)
    assert BrainCheckpoint.info(path)["training_steps"] == 7
    found = BrainCheckpoint.load(path)
    assert found.training_steps == 7 and type(found["training_steps"]) is type(steps)
    for other in (True, -1, 7.5, 1 << 63, None, np.arange(3)):
        BrainCheckpoint.save({**state(), "training_steps": other}, path)
        found = BrainCheckpoint.load(path)
        assert found.training_steps == 0 and same(found["training_steps"], other)


def test_a_policy_in_ones_metadata_is_not_the_files(path):
    half = {"r": {"w": np.ones(3, np.float16)}}
    BrainCheckpoint.save(half, path, metadata={"precision_policy": "fp16", "created": "x", "version": "9"})
    found = BrainCheckpoint.load(path)
    assert same(dict(found), half) and found.metadata["version"] == "1.0.0" and found.metadata["created"] != "x"
    summary = BrainCheckpoint.save(found, path, precision_policy="mixed", reproducible=True)
    assert summary["precision_policy"] == "mixed"
    # The time of a file that is to be the same each time.
    assert BrainCheckpoint.info(path)["metadata"]["created"] == "1970-01-01T00:00:00Z"


def test_metadata_that_are_given_take_the_place_of_those_that_were_loaded(path):
    BrainCheckpoint.save(state(), path, metadata={"epoch": 1})
    BrainCheckpoint.save(BrainCheckpoint.load(path), path, metadata={"epoch": 2})
    found = BrainCheckpoint.load(path)
    assert found.metadata["epoch"] == 2 and found["metadata"] is found.metadata
    # What a state has itself under that name is its own.
    BrainCheckpoint.save({**state(), "metadata": {"mine": 1}}, path, metadata={"epoch": 3})
    BrainCheckpoint.save(BrainCheckpoint.load(path), path)
    found = BrainCheckpoint.load(path)
    assert found["metadata"] == {"mine": 1} and found.metadata["epoch"] == 3


def test_a_lazy_region_is_read_once_by_many_threads(path):
    BrainCheckpoint.save(state(), path)
    for _ in range(20):
        cortex = BrainCheckpoint.load(path, lazy=True).regions["cortex"]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, cortex=cortex: cortex["weights"], range(16)))
        assert all(weights is found[0] for weights in found)


def test_only_what_is_asked_for_is_read(path):
    BrainCheckpoint.save(state(), path)
    with thalia.open(path) as file:
        offset = file["cortex/w_ff"]._source.offset
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    lazy = BrainCheckpoint.load(path, lazy=True)
    assert lazy.regions["striatum"]["votes"][1] == {"a": 1}
    with pytest.raises(thalia.IntegrityError):
        lazy.regions["cortex"]["weights"]
    with pytest.raises(thalia.IntegrityError):
        BrainCheckpoint.load(path)
    valid, issues = BrainCheckpoint.validate(path)
    assert not valid and issues


def test_info_reads_no_tensor(path):
    events = [
        {"step": 10, "region": "cortex", "neurons_added": 8, "reason": "high_utilization", "type": "growth"},
        {"component_name": "cortex", "n_neurons_added": 4, "event_type": "growth", "timestamp": "2025"},
        {"step": 20, "region": "striatum", "synapses_pruned": 3},
    ]
    BrainCheckpoint.save({**state(2), "growth_history": events}, path, metadata={"experiment": "x", "tags": ["a"]})
    info = BrainCheckpoint.info(path)
    assert info["total_neurons"] == 40 and info["training_steps"] == 200 and info["version"] == "1.0.0"
    assert info["regions"] == ["cortex", "striatum", "pathway:cortex_to_striatum"] and info["num_regions"] == 3
    assert info["metadata"]["experiment"] == "x" and info["metadata"]["tags"] == ["a"] and not info["is_delta"]
    assert [event.get("neurons_added") for event in info["growth_history"]] == [8, 4, None]
    assert [event["type"] for event in info["growth_history"]] == ["growth", "growth", "pruning"]
    assert loaded(path)["growth_history"] == events


def test_homeostatic_state_may_be_left_out(path):
    BrainCheckpoint.save(state(), path, include_homeostatic=False)
    assert "homeostatic" not in BrainCheckpoint.load(path).regions["cortex"]


def test_mostly_zeros_are_stored_as_entries(path):
    zeros = np.zeros((200, 300), np.float32)
    zeros[5, 7], zeros[100, 0] = -0.0, np.nan
    BrainCheckpoint.save({"r": {"z": zeros}}, path)
    assert path.stat().st_size < zeros.nbytes / 4
    assert same(BrainCheckpoint.load(path)["r"]["z"], zeros)
    BrainCheckpoint.save({"r": {"z": zeros}}, path, sparse=False)
    assert path.stat().st_size > zeros.nbytes


def test_delta_chains_move_with_their_folder(tmp_path):
    folder = tmp_path / "run"
    BrainCheckpoint.save(state(0), folder / "stage0.thalia")
    first = BrainCheckpoint.save_delta(state(1), folder / "stage1.delta.thalia", folder / "stage0.thalia")
    BrainCheckpoint.save(
        state(2),
        folder / "deep" / "stage2.delta.thalia.zst",
        base_checkpoint=folder / "stage1.delta.thalia",
        delta=True,
    )
    BrainCheckpoint.save_delta(
        state(3, n=44), folder / "stage3.delta.thalia", folder / "deep" / "stage2.delta.thalia.zst"
    )
    assert first["compression_ratio"] > 1 and first["changed_regions"] == 1 and first["changed_pathways"] == 0
    moved = shutil.move(folder, tmp_path / "elsewhere")
    for step, name, n in [
        (1, "stage1.delta.thalia", 40),
        (2, "deep/stage2.delta.thalia.zst", 40),
        (3, "stage3.delta.thalia", 44),
    ]:
        assert same(loaded(Path(moved) / name), state(step, n))
        assert BrainCheckpoint.info(Path(moved) / name)["is_delta"]
    lazy = BrainCheckpoint.load(Path(moved) / "stage3.delta.thalia", lazy=True)
    assert same(lazy.regions["cortex"]["weights"], state(3, 44)["regions"]["cortex"]["weights"])
    with pytest.raises(thalia.UnsupportedError, match="resolve_deltas"):
        BrainCheckpoint.load(Path(moved) / "stage3.delta.thalia", resolve_deltas=False)
    assert not list(Path(moved).glob(".*")) and not list((Path(moved) / "deep").glob(".*"))
    (Path(moved) / "stage0.thalia").unlink()
    assert not BrainCheckpoint.validate(Path(moved) / "stage3.delta.thalia").valid
    with pytest.raises(thalia.IoError):
        BrainCheckpoint.load(Path(moved) / "stage1.delta.thalia")


def test_a_base_that_moved_is_looked_for(tmp_path):
    moved, base, first = tmp_path / "moved", tmp_path / "a.thalia", tmp_path / "b.delta.thalia"
    BrainCheckpoint.save(state(0), base)
    BrainCheckpoint.save_delta(state(1), first, base)
    moved.mkdir()
    base.rename(moved / base.name)
    for search in (str(moved), moved, [moved], (folder for folder in [moved])):
        second = tmp_path / "c.delta.thalia"
        BrainCheckpoint.save_delta(state(2), second, first, search=search)
        assert same(loaded(second, search=str(moved)), state(2))
        assert BrainCheckpoint.validate(second, search=iter([moved])) == (True, [])
        assert BrainCheckpoint.info(second)["is_delta"]
    assert not BrainCheckpoint.validate(second).valid


def test_a_threshold_keeps_what_hardly_moved(tmp_path):
    BrainCheckpoint.save(state(0), tmp_path / "a.thalia")
    later = state(0)
    weights = later["regions"]["cortex"]["weights"]["w_ff"]
    weights += np.float32(1e-6)
    weights[0, 0] += np.float32(1)
    BrainCheckpoint.save_delta(later, tmp_path / "b.thalia", tmp_path / "a.thalia", threshold=1e-5)
    BrainCheckpoint.save_delta(later, tmp_path / "c.thalia", tmp_path / "a.thalia", threshold=1e-5, pack=False)
    assert [thalia.info(tmp_path / name).wrapper is None for name in ("b.thalia", "c.thalia")] == [False, True]
    found = BrainCheckpoint.load(tmp_path / "b.thalia").regions["cortex"]["weights"]["w_ff"]
    before = state(0)["regions"]["cortex"]["weights"]["w_ff"]
    assert found[0, 0] == weights[0, 0] and np.array_equal(found[1:], before[1:])


@pytest.mark.parametrize("name", ["brain.thalia", "brain.thalia.zst"])
def test_precision_policies(tmp_path, name):
    path = tmp_path / name
    summary = BrainCheckpoint.save(
        state(1), path, precision_policy="fp16", compression_level=9 if "zst" in name else None
    )
    assert summary["precision_policy"] == "fp16"
    with thalia.open(path) as file:
        assert file["cortex/w_ff"].dtype == "f16" and file["cortex/membrane"].dtype == "f32"
    found, was = loaded(path), state(1)
    weights = found["regions"]["cortex"]["weights"]["w_ff"]
    assert weights.dtype == np.float32
    assert np.array_equal(weights, was["regions"]["cortex"]["weights"]["w_ff"].astype(np.float16).astype(np.float32))
    assert found["regions"]["cortex"]["neuron_state"]["membrane"].dtype == np.float64
    assert found["regions"]["striatum"]["weights"]["d1"].dtype == np.float16
    assert same(found["replay"], was["replay"])
    assert same(found["regions"]["cortex"]["oscillator_state"], was["regions"]["cortex"]["oscillator_state"])


def test_a_policy_of_ones_own(path):
    policy = PrecisionPolicy(default="keep", patterns={"weights/w_ff": "bf16", "traces/*": "fp16", "u": "fp32"})
    BrainCheckpoint.save(state(), path, precision_policy=policy)
    with thalia.open(path) as file:
        assert [file[f"cortex/{name}"].dtype for name in ("w_ff", "stp.u", "membrane")] == ["bf16", "f32", "f64"]
    found = BrainCheckpoint.load(path).regions["cortex"]
    assert found["weights"]["w_ff"].dtype == np.float32 and found["learning_state"]["stp"]["u"].dtype == np.float64
    original = PrecisionPolicy(weights="fp16", conductances="fp16", match="original")
    BrainCheckpoint.save(state(), path, precision_policy=original)
    with thalia.open(path) as file:
        assert file["cortex/stp.u"].dtype == "f16"  # "g_" is in learning_state
    assert set(PRECISION_POLICIES) == {"fp32", "fp16", "bf16", "mixed", "keep"}


def test_a_chain_keeps_its_policy(tmp_path):
    BrainCheckpoint.save(
        state(0), tmp_path / "a.thalia", precision_policy=PrecisionPolicy(weights="fp16", patterns={"u": "fp16"})
    )
    summary = BrainCheckpoint.save_delta(
        state(1), tmp_path / "b.delta.thalia.zst", tmp_path / "a.thalia", compression_level=9
    )
    assert summary["precision_policy"] == BrainCheckpoint.info(tmp_path / "a.thalia")["metadata"]["precision_policy"]
    with thalia.open(tmp_path / "b.delta.thalia.zst") as file:
        assert file["cortex/w_ff"].dtype == "f16" and file["cortex/stp.u"].dtype == "f16"
    BrainCheckpoint.save_delta(state(1), tmp_path / "c.thalia", tmp_path / "a.thalia", precision_policy="keep")
    assert same(loaded(tmp_path / "c.thalia"), state(1))


def test_compress_checkpoint(tmp_path):
    BrainCheckpoint.save(state(), tmp_path / "a.thalia")
    compress_checkpoint(tmp_path / "a.thalia", tmp_path / "a.thalia.zst", algorithm="zstd", level=9)
    compress_checkpoint(tmp_path / "a.thalia", tmp_path / "a.thalia.lz4")
    shutil.copy(ORIGINAL / "full.thalia", tmp_path / "old.thalia")
    compress_checkpoint(tmp_path / "old.thalia", tmp_path / "old.thalia.zst")
    assert same(loaded(tmp_path / "a.thalia.zst"), state()) and same(loaded(tmp_path / "a.thalia.lz4"), state())
    assert next(iter(BrainCheckpoint.load(tmp_path / "old.thalia.zst", framework="numpy").regions)) == "cortex"


def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "brain.thalia.zst"
    BrainCheckpoint.save(state(1), path)
    code = (
        "import os, sys, signal, numpy as np\n"
        "from thalia_checkpoint.brain import BrainCheckpoint\n"
        "kill = lambda done, total: os.kill(os.getpid(), signal.SIGKILL)\n"
        "BrainCheckpoint.save({'r': {'w': np.ones(1000)}}, sys.argv[1], progress=kill)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -9
    assert same(loaded(path), state(1))
    BrainCheckpoint.save(state(2), path)
    assert same(loaded(path), state(2)) and [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_members_may_have_the_names_that_files_use(path):
    odd = [np.zeros(0), np.ones(3), "object", [1]]
    members = {"regions": {"r": {"weights": {f"s{i}": {"_type": each} for i, each in enumerate(odd)}}}}
    BrainCheckpoint.save(members, path)
    assert same(loaded(path)["regions"], members["regions"])


def test_torch_is_imported_only_where_it_is_needed(path):
    code = (
        "import sys, numpy as np\n"
        "from thalia_checkpoint.brain import BrainCheckpoint\n"
        "BrainCheckpoint.save({'weights': {'w': np.ones(3)}}, sys.argv[1], precision_policy='fp16')\n"
        "BrainCheckpoint.load(sys.argv[1]); BrainCheckpoint.info(sys.argv[1])\n"
        "assert 'torch' not in sys.modules and 'ml_dtypes' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert json.dumps(BrainCheckpoint.info(path)["metadata"])
