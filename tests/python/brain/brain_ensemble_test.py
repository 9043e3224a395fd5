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
    done = save_ensemble({"left/": left, "right/": Brain(right), "flat/": flat}, path, metadata={"experiment": 4})
    assert done.output_bytes == path.stat().st_size and done.losses == ()
    assert [found.name for found in path.parent.iterdir()] == ["all.thalia"]  # nothing else is left
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
    thalia.decompress(tmp_path / "all.thalia.zst", tmp_path / "all.thalia")
    thalia.extract_brain(tmp_path / "all.thalia", "b/", tmp_path / "b again.thalia")
    assert same(plain(BrainCheckpoint.load(tmp_path / "b again.thalia")), plain(BrainCheckpoint.load(names["b/"])))
    assert thalia.diff(names["b/"], tmp_path / "b again.thalia").same


def test_files_of_other_kinds_are_brains_too(tmp_path):
    BrainCheckpoint.save(full(4), tmp_path / "base.thalia")
    BrainCheckpoint.save_delta(full(4, 300), tmp_path / "d.delta.thalia", tmp_path / "base.thalia")
    thalia.migrate(tmp_path / "base.thalia", tmp_path / "old.thalia", to="0.1", across_major=True)
    thalia.save({"w": np.ones(3)}, tmp_path / "plain.thalia")
    brains = {"d/": "d.delta.thalia", "o/": "old.thalia", "p/": "plain.thalia"}
    save_ensemble({prefix: tmp_path / name for prefix, name in brains.items()}, tmp_path / "all.thalia")
    found = load_ensemble(tmp_path / "all.thalia", framework="numpy")
    assert found["d/"].training_steps == 300
    assert found["o/"].regions["cortex"]["weights"]["w_ff"].shape == (4, 4)
    thalia.extract_brain(tmp_path / "all.thalia", "p/", tmp_path / "p.thalia")
    assert np.array_equal(thalia.load(tmp_path / "p.thalia")["w"], np.ones(3))


def test_precision_is_that_of_the_ensemble(tmp_path):
    BrainCheckpoint.save(full(), tmp_path / "a.thalia")
    save_ensemble({"a/": tmp_path / "a.thalia", "b/": full()}, tmp_path / "all.thalia", precision_policy="fp16")
    with thalia.open(tmp_path / "all.thalia") as file:
        assert {file[f"{prefix}/cortex"]["w_ff"].dtype for prefix in "ab"} == {"f16"}


def test_files_are_merged_under_prefixes(tmp_path):
    for name in "ab":
        BrainCheckpoint.save({"r": {"weights": {"w": np.full(3, ord(name))}}}, tmp_path / f"{name}.thalia")
    files = [tmp_path / "a.thalia", tmp_path / "b.thalia"]
    thalia.merge(files, tmp_path / "all.thalia", prefixes=["a.", "b."], metadata={"custom": {"n": 4}})
    with thalia.open(tmp_path / "all.thalia") as file:
        assert {"a.r", "b.r"} <= set(file) and file["b.r"]["w"].numpy()[0] == ord("b")
        assert file.metadata["custom"] == {"n": 4}
    thalia.extract_brain(tmp_path / "all.thalia", "a.", tmp_path / "again.thalia")
    assert thalia.diff(files[0], tmp_path / "again.thalia").same
    for wrong, code in ((["x"], "bad_argument"), (["x", "xy"], "duplicate"), (["x", ""], "bad_argument")):
        with pytest.raises(thalia.UsageError) as raised:
            thalia.merge(files, tmp_path / "no.thalia", prefixes=wrong)
        assert raised.value.code == code
    with pytest.raises(thalia.UsageError, match="preference"):
        thalia.merge(files, tmp_path / "no.thalia", prefixes=["x", "y"], prefer="first")
    with pytest.raises(thalia.UsageError, match="no ensemble"):
        thalia.extract_brain(files[0], "a.", tmp_path / "no.thalia")
    with pytest.raises(thalia.NotFoundError, match="did you mean 'a\\.'"):
        thalia.extract_brain(tmp_path / "all.thalia", "a,", tmp_path / "no.thalia")
    with pytest.raises(thalia.UsageError, match="file that is read"):
        thalia.extract_brain(tmp_path / "all.thalia", "a.", tmp_path / "all.thalia")
    with pytest.raises(TypeError):
        thalia.extract_brain(files[0], 3, tmp_path / "no.thalia")
    with pytest.raises(thalia.UsageError, match="metadata"):
        thalia.merge(files, tmp_path / "no.thalia", metadata={})
    assert not (tmp_path / "no.thalia").exists()


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
    for value in (3, {"version": 1, "brains": [{"prefix": "z/"}]}, {"version": 1}):
        BrainCheckpoint.save(full(), path, metadata={"thalia_ensemble": value})
        with pytest.raises(thalia.FormatError, match="thalia_ensemble"):
            load_ensemble(path)
    BrainCheckpoint.save(full(), path, metadata={"thalia_ensemble": {"version": 2, "brains": []}})
    with pytest.raises(thalia.UnsupportedError, match="thalia_ensemble"):
        load_ensemble(path)
    save_ensemble({"left/": full()}, path)
    with pytest.raises(thalia.NotFoundError, match="did you mean 'left/'"):
        load_ensemble(path, ["letf/"])
