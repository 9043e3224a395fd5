"""Brains in files of the original program and of others, and input that cannot be."""

import dataclasses
import enum
import sys
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
from brain_test import Brain, loaded, same, state
from thalia_checkpoint.brain import BrainCheckpoint, PrecisionPolicy

ORIGINAL = Path(__file__).resolve().parents[2] / "data" / "v01"


@pytest.mark.parametrize("name", ["full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst"])
def test_files_of_the_original_program(name, tmp_path):
    path = ORIGINAL / name
    brain = BrainCheckpoint.load(path, framework="numpy")
    assert list(brain)[:2] == ["regions", "metadata"] and list(brain.pathways) == ["cortex_to_striatum"]
    cortex = brain.regions["cortex"]
    assert np.array_equal(cortex["weights"]["w_ff"], (np.arange(12, dtype=np.float32).reshape(4, 3) - 8) / 8)
    assert cortex["weights"]["missing"] is None and cortex["neuron_state"]["spikes"].dtype == bool
    assert cortex["weights"]["w_rec_sparse"].shape == (20, 20) and cortex["neuromodulator_state"]["dopamine"] == 0.5
    assert brain["trial_state"] == {"spike_counts": {"cortex": 5}, "last_action": None}
    assert brain["config"]["cortex_type"] == "LAYERED" and brain["theta"] == {"phase": 0.5, "frequency": 8.0}
    info = BrainCheckpoint.info(path)
    assert info["version"] == "0.1.0" and info["training_steps"] == 1000 and info["total_neurons"] == 10
    assert info["metadata"]["thalia_version"] == "0.2.0" and info["metadata"]["experiment"] == "vectors"
    assert info["metadata"]["scheduler"] == {"current_time": 12.0, "events_processed": 34}
    assert info["growth_history"][0] | {"region": "striatum", "neurons_added": 8} == info["growth_history"][0]
    assert BrainCheckpoint.validate(path) == (True, [])
    # Saved again it is a file of this version, with the same state.
    BrainCheckpoint.save(brain, tmp_path / "new.thalia")
    again = BrainCheckpoint.load(tmp_path / "new.thalia")
    assert again["metadata"]["experiment"] == "vectors" and again["metadata"]["version"] == "1.0.0"
    assert BrainCheckpoint.info(tmp_path / "new.thalia")["growth_history"] == info["growth_history"]
    rest = [{key: value for key, value in state.items() if key != "metadata"} for state in (again, brain)]
    assert same(*rest)
    # Converted by the program as well.
    thalia.convert(path, tmp_path / "converted.thalia")
    assert same(dict(BrainCheckpoint.load(tmp_path / "converted.thalia", framework="numpy")), dict(brain))


def test_classes_of_the_original_are_made_only_on_request():
    region = BrainCheckpoint.load(ORIGINAL / "full.thalia", framework="numpy").regions["striatum"]
    assert region["state_dc"]["dopamine"] == 0.75 and region["obj"]["gain"] == 1.5 and region["device"] == "cpu"

    made = dataclasses.make_dataclass("RegionState", ["spikes", "membrane", "dopamine", "t", "inner"])
    made.__module__ = "thalia_vec"
    brain = BrainCheckpoint.load(ORIGINAL / "full.thalia", framework="numpy", classes=[made])
    assert isinstance(brain.regions["striatum"]["state_dc"], made) and "thalia_vec" not in sys.modules


def test_odd_and_broken_files_of_the_original_program(tmp_path):
    with pytest.warns(UserWarning, match="flags") as warned:
        BrainCheckpoint.load(ORIGINAL / "flags_reserved_nonzero.thalia", framework="numpy")
    assert {each.filename for each in warned} == {__file__}
    with pytest.raises(TypeError, match="acess"):
        BrainCheckpoint.load(ORIGINAL / "full.thalia", framework="numpy", acess="copied")
    with pytest.raises(thalia.FormatError, match="region_index_offset"):
        BrainCheckpoint.load(ORIGINAL / "neg_index_offset_oob.thalia")
    with pytest.raises(thalia.UnsupportedError, match="pickle"):
        BrainCheckpoint.load(ORIGINAL / "delta_stage1.delta.thalia")
    for name in ("neg_index_offset_oob.thalia", "delta_stage1.delta.thalia"):
        assert not BrainCheckpoint.validate(ORIGINAL / name).valid
    with pytest.raises(thalia.UnsupportedError, match="migrate"):
        BrainCheckpoint.save_delta(state(), tmp_path / "d.thalia", ORIGINAL / "full.thalia")


class Left(enum.Enum):
    ONE = 1


class Right(enum.Enum):
    ONE = 1


@pytest.mark.parametrize(
    ("brain", "where"),
    [
        ({"regions": {"a": {"weights": {"f": print}}}}, r"a\.weights\.f"),
        ({"a": {"b": [1, {"c": object()}]}}, r"a\.b\[1\]\.c"),
        ({"a": {"w": np.array([object()])}}, r"a\.w\[0\]: cannot save builtins\.object"),
        ({"a": {"w": np.ma.array(["text"], mask=[1])}}, r"a\.w: .*masked"),
        ({"a": {"w": np.ma.array([1], mask=[1])}}, r"a\.w: .*masked"),
        ({"a": {"d": {Left.ONE: 1, Right.ONE: 2}}}, r"a\.d: .*the same"),
        ({"a": {"s": {Left.ONE, Right.ONE}}}, r"a\.s: .*the same"),
        ({"a": {"n": [1 << 14_000]}}, r"a\.n\[0\]: .*14000 bits"),
        ({"a": {"text": "\ud800"}}, r"a\.text: .*UTF-8"),
        ({"a": {"keys": {"\ud800": np.ones(2)}}}, r"a\.keys\.key: .*UTF-8"),
    ],
)
def test_what_cannot_be_saved_is_named(path, brain, where):
    BrainCheckpoint.save({"kept": 1}, path)
    with pytest.raises(thalia.UnsupportedError, match=where):
        BrainCheckpoint.save(brain, path)
    itself = []
    itself.append(itself)
    with pytest.raises(thalia.UnsupportedError, match="holds itself"):
        BrainCheckpoint.save({"a": {"x": itself}}, path)
    assert BrainCheckpoint.load(path) == {"kept": 1}


def test_arguments_that_cannot_be(path, tmp_path):
    BrainCheckpoint.save(state(), path)
    bad = [
        (lambda: BrainCheckpoint.save(3, path), "get_full_state"),
        (lambda: BrainCheckpoint.save(Brain([1]), path), "dictionary"),
        (lambda: BrainCheckpoint.save({1: 2}, path), "texts"),
        (lambda: BrainCheckpoint.save({"regions": {"brain:state": {}}}, path), "brain:state"),
        (lambda: BrainCheckpoint.save({"regions": {"a": [1]}}, path), r"regions\.a: got list, .*get_full_state"),
        (
            lambda: BrainCheckpoint.save({"pathways": {}, "regions": {"a": {1: 2}}}, path),
            r"regions\.a: .* key 1, .*texts",
        ),
        (lambda: BrainCheckpoint.save({"regions": {"\ud800": {}}}, path), "regions: .*a text"),
        (lambda: BrainCheckpoint.save({"\ud800": 1}, path), "brain: .*texts"),
        (lambda: BrainCheckpoint.save({}, path, compression="gzip"), "compression"),
        (lambda: BrainCheckpoint.save({}, tmp_path / "a.zst", compression="lz4"), "codec"),
        (lambda: BrainCheckpoint.save({}, path, precision_policy="fp8"), "precision policy"),
        (lambda: BrainCheckpoint.save({}, path, delta=True), "base_checkpoint"),
        (lambda: BrainCheckpoint.save_delta({}, path, path), "based on"),
        (lambda: BrainCheckpoint.save({}, path, metadata={"x": object()}), r"metadata\.x"),
        (lambda: BrainCheckpoint.save({}, path, metadata={"growth_history": [3]}), "growth_history"),
        (lambda: BrainCheckpoint.save({}, path, metadata={"growth_history": "x"}), r"metadata\.growth_history.*list"),
        (lambda: BrainCheckpoint.save({}, path, metadata="x"), "metadata: got 'x'"),
        (lambda: BrainCheckpoint.save({}, path, metadata={"x": [10**5000]}), r"metadata\.x\[0\].*14000 bits"),
        (lambda: BrainCheckpoint.save({}, path, metadata={"\ud800": 1}), "metadata: "),
        (lambda: BrainCheckpoint.save({}, path, precision_policy=["fp16"]), "precision policy"),
        (lambda: PrecisionPolicy(weights="fp8"), r"weights.*fp8"),
        (lambda: PrecisionPolicy(patterns={"w": "int8"}), r"patterns.*int8"),
        (lambda: BrainCheckpoint.load(path, into=object()), "load_full_state"),
        (lambda: BrainCheckpoint.load(path, framework="jax"), "framework"),
        (lambda: BrainCheckpoint.load(path, regions=["hippocampus"]), "hippocampus.*cortex"),
        (lambda: BrainCheckpoint.save(state(), path, replace=False), "there already"),
    ]
    for call, text in bad:
        with pytest.raises(thalia.UsageError, match=text):
            call()
    for call in (BrainCheckpoint.load, BrainCheckpoint.info, lambda p: BrainCheckpoint.save_delta({}, path, p)):
        with pytest.raises(FileNotFoundError):
            call(tmp_path / "nowhere.thalia")
    assert BrainCheckpoint.validate(tmp_path / "nowhere.thalia").issues[0].startswith("File not found")
    assert same(loaded(path), state())


def test_more_than_the_limit_is_refused(path):
    zeros = np.zeros((4000, 1000), np.float64)
    BrainCheckpoint.save({"r": {"z": zeros}}, path)
    assert path.stat().st_size < 100_000
    with pytest.raises(thalia.FormatError, match="max_bytes"):
        BrainCheckpoint.load(path, max_bytes=1_000_000)
    with pytest.raises(thalia.FormatError, match="max_bytes"):
        BrainCheckpoint.load(path, max_bytes=1000)
    BrainCheckpoint.load(path, max_bytes=1_000_000, lazy=True)


TENSOR = {"_type": "tensor", "_name": "w"}


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"version": 2, "components": {}}, "version"),
        ([], "version"),
        ({"version": 1, "components": []}, "components"),
        ({"version": 1, "components": {"a": {"_type": "tensor", "_name": "nothing"}}}, "_name"),
        ({"version": 1, "components": {"a": {"_type": "tensor"}}}, "_name"),
        ({"version": 1, "components": {"a": {"_type": "scalar", "_name": "w"}}}, "_name"),
        ({"version": 1, "components": {"a": {**TENSOR, "_dtype": "i8"}}}, "_dtype"),
        ({"version": 1, "components": {"a": {**TENSOR, "_dtype": [1]}}}, "_dtype"),
        ({"version": 1, "components": {"a": {"_type": "number", "_text": "1"}}}, "_text"),
        ({"version": 1, "components": {"a": {"_type": "number", "_text": []}}}, "_text"),
        ({"version": 1, "components": {"a": {"_type": "object", "_members": 3}}}, "_members"),
        ({"version": 1, "components": {"a": {"_type": "python"}}}, "components"),
        ({"version": 1, "components": {"a": {"_type": "python", "_kind": "os.system", "_value": "id"}}}, "components"),
        (
            {"version": 1, "components": {"a": {"_type": "python", "_kind": "leaf", "_value": {"int": "x"}}}},
            "components",
        ),
        ({"version": 1, "components": {"a": {"_type": "python", "_kind": "numpy", "_value": 3}}}, "components"),
        ({"version": 1, "components": {"a": {"_type": "python", "_kind": "dict", "_value": [[[], 1]]}}}, "components"),
        ({"version": 1, "components": {"a": {"_type": "python", "_kind": "set", "_value": 5}}}, "components"),
    ],
)
def test_trees_that_break_the_rules(path, tree, text):
    with thalia.Writer(path) as writer:
        writer.region("r", metadata={"thalia_state": tree})
        writer.add("w", np.ones(3, np.float32), region="r")
        writer.metadata = {"thalia_brain": {"version": 1, "layout": "regions", "arrays": "numpy", "keys": []}}
    with pytest.raises((thalia.FormatError, thalia.UnsupportedError), match=text) as caught:
        BrainCheckpoint.load(path)
    assert caught.value.region == "r"
    assert not BrainCheckpoint.validate(path).valid


@pytest.mark.parametrize(
    "mark",
    [
        3,
        {},
        {"version": 2},
        {"version": 1, "layout": "x", "arrays": "numpy", "keys": []},
        {"layout": "flat", "arrays": "numpy", "keys": [1]},
    ],
)
def test_marks_that_break_the_rules(path, mark):
    with thalia.Writer(path) as writer:
        writer.metadata = {"thalia_brain": mark, "growth_history": 5}
    for call in (BrainCheckpoint.load,):
        with pytest.raises((thalia.FormatError, thalia.UnsupportedError), match="thalia_brain"):
            call(path)
    with pytest.raises(thalia.FormatError, match="growth_history"):
        BrainCheckpoint.info(path)
    assert not BrainCheckpoint.validate(path).valid


def test_files_that_other_programs_wrote(path):
    with thalia.Writer(path) as writer:
        writer.region("cortex", n_neurons=2, n_inputs=3, config={"lr": 0.5})
        writer.region("striatum", n_neurons=2)
        writer.add("w", np.ones((2, 3)), region="cortex", role="weights")
        writer.add("membrane", np.zeros(2), region="cortex", role="region_state")
        writer.add("odd", np.zeros(2), region="cortex", role="other")
        writer.connect("cortex", "striatum", np.ones((2, 2), np.float32))
        writer.metadata = {"x": {"_type": "python", "_kind": "set", "_value": []}}
        writer.training_steps = 9
    brain = BrainCheckpoint.load(path)
    assert brain["training_steps"] == 9 and brain.metadata["x"]["_type"] == "python"
    cortex = brain.regions["cortex"]
    assert cortex["config"] == {"lr": 0.5} and set(cortex) == {"config", "region_state", "other", "weights"}
    assert cortex["weights"]["w"].shape == (2, 3) and cortex["region_state"]["membrane"].shape == (2,)
    (connection,) = brain["connections"]
    assert connection["source"] == "cortex" and connection["weights"].shape == (2, 2) and connection["delays"] is None
    thalia.convert(path, path.with_suffix(".safetensors"))
    with pytest.raises(thalia.FormatError, match="a safetensors file; make"):
        BrainCheckpoint.load(path.with_suffix(".safetensors"))
