"""Several brains in one file."""

import copy

import numpy as np
import pytest
import thalia_checkpoint as thalia
from brain_test import Brain, same
from growth_test import state
from thalia_checkpoint import brain as tb
from thalia_checkpoint.brain import BrainCheckpoint, load_ensemble, save_ensemble


def full(n=6, step=100):
    brain = state(n, step)
    brain["pathways"] = {"p": {"weights": {"w": np.arange(float(n))}}}
    brain["regions"]["striatum"].facts.metadata["axes"] = {"weights.cortex": ["neurons", "source:cortex"]}
    brain["neuromodulators"] = {"dopamine": 0.5, "trace": np.arange(3)}
    return brain


def plain(brain):
    return {key: value for key, value in dict(brain).items() if key != "metadata"}


def test_brains_come_back_as_their_own_files_would_give_them(tmp_path):
    left, right, flat = full(6, 100), full(4, 200), {"cortex": {"w": np.ones(3)}, "step": 7}
    tb.grow_output(left, "cortex", 2)
    path = tmp_path / "new" / "all.thalia"
    summary = save_ensemble({"left/": left, "right/": Brain(right), "flat/": flat}, path, metadata={"experiment": 4})
    assert summary["file_size"] == path.stat().st_size and summary["num_pathways"] == 2
    found = load_ensemble(path)
    assert list(found) == ["left/", "right/", "flat/"]
    for prefix, brain in {"left/": left, "right/": right, "flat/": flat}.items():
        BrainCheckpoint.save(brain, tmp_path / "alone.thalia")
        alone = BrainCheckpoint.load(tmp_path / "alone.thalia")
        assert same(plain(found[prefix]), plain(alone)), prefix
        assert found[prefix].training_steps == alone.training_steps
        assert found[prefix].metadata.get("growth_history", []) == alone.metadata["growth_history"]
        for name in alone.regions:
            ours, theirs = found[prefix].regions[name].facts, alone.regions[name].facts
            assert ours == theirs, (prefix, name)
    assert BrainCheckpoint.validate(path) == (True, [])
    info = BrainCheckpoint.info(path)
    assert info["metadata"]["experiment"] == 4 and "left/cortex" in info["regions"]
    assert info["training_steps"] == 200 and info["growth_history"][0]["region"] == "left/cortex"


def test_files_become_one_file_and_come_out_again(tmp_path):
    names = {"a/": tmp_path / "a.thalia", "b/": tmp_path / "b.thalia"}
    for i, path in enumerate(names.values()):
        BrainCheckpoint.save(full(4 + i, 10 * i), path, metadata={"number": i})
    save_ensemble(names, tmp_path / "all.thalia.zst")
    found = load_ensemble(tmp_path / "all.thalia.zst", ["b/"])
    assert list(found) == ["b/"] and found["b/"].metadata["number"] == 1
    BrainCheckpoint.save(found["b/"], tmp_path / "again.thalia")
    assert same(plain(BrainCheckpoint.load(tmp_path / "again.thalia")), plain(BrainCheckpoint.load(names["b/"])))
    with pytest.raises(thalia.UsageError, match="file that is read"):
        save_ensemble(names, names["a/"])


def test_one_brain_of_several_grows(tmp_path):
    path = tmp_path / "all.thalia"
    save_ensemble({"a/": full(), "b/": full()}, path)
    other = copy.deepcopy(plain(load_ensemble(path)["b/"]))
    done = tb.grow_file(path, "a/cortex", 2, seed=3)
    assert done.growth.targets_left == ("a/striatum",)
    tb.grow_file_source(path, "a/striatum", "a/cortex", 2)
    found = load_ensemble(path)
    assert same(plain(found["b/"]), other) and found["b/"].metadata.get("growth_history", []) == []
    assert [event["region"] for event in found["a/"].metadata["growth_history"]] == ["cortex", "striatum"]
    assert found["a/"].regions["striatum"]["weights"]["cortex"].shape == (3, 8)
    assert found["a/"].connections[0]["weights"].shape == (8, 3)
    tb.grow_output(found["a/"], "cortex", 1, grow_targets=True)
    save_ensemble(found, path)
    assert load_ensemble(path)["a/"].regions["striatum"].facts.n_inputs == 9


def test_regions_are_read_when_they_are_touched(tmp_path):
    path = tmp_path / "all.thalia"
    save_ensemble({"a/": full(), "b/": full(4)}, path)
    lazy = load_ensemble(path, lazy=True)
    assert not lazy["b/"].regions["cortex"].is_loaded and lazy["b/"].regions["cortex"].facts.n_neurons == 4
    assert lazy["b/"].regions["cortex"]["weights"]["w_ff"].shape == (4, 4)
    assert not lazy["a/"].regions["cortex"].is_loaded


@pytest.mark.parametrize(
    "brains",
    [{}, None, {"": {}}, {3: {}}, {"a": {}, "a/": {}}, {"pathway:a": {}}, {"brain:state": {}}, {"\ud800": {}}, [1]],
)
def test_prefixes_that_cannot_be(tmp_path, brains):
    with pytest.raises(thalia.UsageError):
        save_ensemble(brains, tmp_path / "all.thalia")
    assert not (tmp_path / "all.thalia").exists()


def test_what_is_no_ensemble(tmp_path):
    path = tmp_path / "one.thalia"
    BrainCheckpoint.save(full(), path)
    with pytest.raises(thalia.UsageError, match="no ensemble"):
        load_ensemble(path)
    for value in (3, {"version": 2, "brains": []}, {"version": 1, "brains": [{"prefix": "z/"}]}, {"version": 1}):
        BrainCheckpoint.save(full(), path, metadata={"thalia_ensemble": value})
        with pytest.raises(thalia.FormatError, match="thalia_ensemble"):
            load_ensemble(path)
    save_ensemble({"left/": full()}, path)
    with pytest.raises(thalia.NotFoundError, match="did you mean 'left/'"):
        load_ensemble(path, ["letf/"])
