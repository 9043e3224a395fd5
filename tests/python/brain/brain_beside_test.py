"""What a file holds beside a brain's tensors outlives loading and saving, no matter who wrote it."""

import copy
import json
import pickle
import threading
import warnings

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import _core
from thalia_checkpoint.brain import (
    BrainCheckpoint,
    BrainRegion,
    CurriculumTrainer,
    RegionFacts,
    StageConfig,
)

LONG = "area " + "x" * 40  # longer than the short names that connections have
AXES = {"weights.w_ff": ["neurons", "source:thalamus"], "weights.w_rec": ["neurons", "neurons"]}
NOTES = {"note": "the application's", "nested": {"a": [1, None]}}


def write(path, tree=False):
    """A file as Writer, or a program that knows no states, has it."""
    rng = np.random.default_rng(5)
    with thalia.Writer(path, durability="none", timestamp=7) as writer:
        writer.region(
            "cortex", n_neurons=40, n_inputs=30, neuron_type="lif", homeostatic_updated=1234,
            config={"n_neurons": 40, "v_rest": -65.0}, metadata={"axes": AXES, **NOTES},
        )  # fmt: skip
        writer.add("thresholds", np.ones(40), region="cortex", role="homeostatic")
        writer.add("w_ff", rng.normal(size=(40, 30)).astype(np.float32), region="cortex", role="weights")
        writer.add("w_rec", rng.normal(size=(40, 40)).astype(np.float32), region="cortex", role="weights")
        writer.region(
            LONG, n_neurons=8, neuron_type="conductance_lif", metadata={"limit": {"_type": "number", "_text": "NaN"}}
        )
        writer.add("w", rng.normal(size=(8, 40)), region=LONG, role="weights")
        writer.region("pathway:fast", n_inputs=3)
        writer.add("w", np.ones((2, 3), np.float32), region="pathway:fast")
        components = {"components": {"seen": 3}, "version": 1}
        writer.region("brain:state", metadata={"thalia_state": components, "owner": "me"} if tree else {"owner": "me"})
        weights = np.zeros((40, 8), np.float32)
        weights[3, 4] = 0.5
        writer.connect("cortex", LONG, weights, np.full((40, 8), 2.0, np.float32))
        writer.connect(LONG, "pathway:fast", rng.normal(size=(8, 2)).astype(np.float16))
        writer.metadata = {
            "description": "a file of others",
            "mine": {"x": [1]},
            "growth_history": [{"step": 1, "type": "growth"}],
        }
        writer.training_steps = 17


def beside(path, names=None):
    """All of a file that is no tensor of a region."""
    with thalia.open(path) as file:
        regions = {}
        for region in file.values():
            name = (names or {}).get(region.name, region.name)
            metadata = {key: v for key, v in region.metadata.items() if key not in ("thalia_state", "connections")}
            if name == "brain:state":
                regions[name] = metadata
                continue
            numbers = region.n_neurons, region.n_inputs, region.neuron_type, region.homeostatic_updated
            regions[name] = numbers, region.config, metadata
        wired = {
            ((names or {}).get(c.source, c.source), (names or {}).get(c.target, c.target)): [
                None if t is None else (str(t.dense().dtype), t.dense().tolist()) for t in (c.weights, c.delays)
            ]
            for c in file.connections
        }
        kept = {key: file.metadata[key] for key in ("description", "mine", "growth_history")}
        return regions, wired, kept, file.header["training_steps"]


class Brain:
    """Takes arrays alone out of a state, as programs do, and gives a new dictionary."""

    def __init__(self):
        self.regions, self.steps = {}, 0

    def load_full_state(self, state):
        self.regions = {
            name: {key: dict(value) for key, value in region.items()} for name, region in state.regions.items()
        }
        self.pathways = {name: dict(part) for name, part in state.pathways.items()}
        self.steps = state.training_steps

    def get_full_state(self):
        return {"regions": self.regions, "pathways": self.pathways, "training_steps": self.steps}

    def train_epoch(self, config, epoch):
        return {"loss": 1.0}


def itself(path, **options):
    return BrainCheckpoint.load(path, **options)


def in_an_object(path, **options):
    return BrainCheckpoint.load(path, into=Brain(), **options)


def that_keeps_the_state(path, **options):
    class Keeper(Brain):
        def load_full_state(self, state):
            self.state = state

        def get_full_state(self):
            return self.state

    return BrainCheckpoint.load(path, into=Keeper(), **options)


def copied(path, **options):
    return copy.deepcopy(BrainCheckpoint.load(path, **options))


def sent(path, **options):
    return pickle.loads(pickle.dumps(BrainCheckpoint.load(path, **options)))


WAYS = [itself, in_an_object, that_keeps_the_state, copied, sent]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["b.thalia", "b.thalia.zst"])
@pytest.mark.parametrize("policy", [None, "fp16"])
def test_a_file_of_others_is_saved_with_all_that_it_held(way, lazy, name, policy, tmp_path):
    write(tmp_path / "a.thalia")
    brain = way(tmp_path / "a.thalia", lazy=lazy)
    BrainCheckpoint.save(brain, tmp_path / name, precision_policy=policy)
    regions, wired, kept, steps = beside(tmp_path / name)
    expected = beside(tmp_path / "a.thalia")
    assert regions == expected[0] and kept == expected[2] and steps == 17
    if policy is None:
        assert wired == expected[1]
    assert BrainCheckpoint.validate(tmp_path / name) == (True, [])
    # And once more.
    again = way(tmp_path / name, lazy=lazy)
    BrainCheckpoint.save(again, tmp_path / "c.thalia")
    assert beside(tmp_path / "c.thalia")[0] == expected[0]
    # In the types that the matrices had.
    found = BrainCheckpoint.load(tmp_path / name).connections
    assert [c["weights"].dtype for c in found] == [np.float32, np.float16] and found[1]["delays"] is None


@pytest.mark.parametrize("way", WAYS)
def test_a_delta_holds_it_too(way, tmp_path):
    write(tmp_path / "a.thalia")
    brain = way(tmp_path / "a.thalia")
    done = BrainCheckpoint.save_delta(brain, tmp_path / "b.delta.thalia", tmp_path / "a.thalia")
    assert done["delta_size_mb"] < done["base_size_mb"]
    assert beside(tmp_path / "b.delta.thalia") == beside(tmp_path / "a.thalia")
    BrainCheckpoint.save(way(tmp_path / "b.delta.thalia"), tmp_path / "c.thalia")
    assert beside(tmp_path / "c.thalia") == beside(tmp_path / "a.thalia")


def test_a_brain_wide_state_keeps_its_own(tmp_path):
    write(tmp_path / "a.thalia", tree=True)
    state = BrainCheckpoint.load(tmp_path / "a.thalia")
    assert state["seen"] == 3
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    assert beside(tmp_path / "b.thalia") == beside(tmp_path / "a.thalia")
    assert BrainCheckpoint.load(tmp_path / "b.thalia")["seen"] == 3


@pytest.mark.parametrize("lazy", [False, True])
def test_a_part_keeps_what_is_said_of_it(lazy, tmp_path):
    write(tmp_path / "a.thalia")
    whole = beside(tmp_path / "a.thalia")
    state = BrainCheckpoint.load(tmp_path / "a.thalia", regions=["cortex", LONG])
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    regions, wired, *_ = beside(tmp_path / "b.thalia")
    assert regions == {name: whole[0][name] for name in ("cortex", LONG, "brain:state")}
    assert wired == {("cortex", LONG): whole[1]["cortex", LONG]}
    state = BrainCheckpoint.load(tmp_path / "a.thalia", regions=["pathway:fast"], lazy=lazy)
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    assert (beside(tmp_path / "b.thalia")[0] == whole[0]) == lazy


@pytest.mark.parametrize("lazy", [False, True])
def test_a_region_under_another_name_keeps_what_was_said_of_it(lazy, tmp_path):
    write(tmp_path / "a.thalia")
    state = BrainCheckpoint.load(tmp_path / "a.thalia", lazy=lazy)
    state["regions"]["visual"] = state["regions"].pop("cortex")
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    names = {"cortex": "visual"}
    assert beside(tmp_path / "b.thalia") == beside(tmp_path / "a.thalia", names)
    # One that took its name is another.
    state["regions"]["cortex"] = {"weights": {"w": np.ones((2, 2))}}
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    with thalia.open(tmp_path / "b.thalia") as file:
        assert file["cortex"].n_neurons == 0 and file["visual"].n_neurons == 40
    # Parts of two files make a third, with plain dictionaries around them.
    other = BrainCheckpoint.load(tmp_path / "a.thalia", lazy=lazy)
    BrainCheckpoint.save({"regions": {"v": state.regions["visual"], LONG: other.regions[LONG]}}, tmp_path / "c.thalia")
    with thalia.open(tmp_path / "c.thalia") as file:
        assert file["v"].n_neurons == 40 and file["v"].metadata["axes"] == AXES and not file.connections
        assert file[LONG].neuron_type == "conductance_lif"
    # A plain dictionary of the loaded members has the regions and the connections too.
    BrainCheckpoint.save({key: other[key] for key in ("regions", "pathways", "connections")}, tmp_path / "d.thalia")
    with thalia.open(tmp_path / "d.thalia") as file:
        assert file["cortex"].metadata["axes"] == AXES and file["cortex"].neuron_type == "lif"
        assert [(c.source, c.target) for c in file.connections] == [("cortex", LONG), (LONG, "pathway:fast")]


def test_a_config_that_the_tree_does_not_name_is_kept(tmp_path):
    with thalia.Writer(tmp_path / "a.thalia", durability="none") as writer:
        tree = {"thalia_state": {"version": 1, "components": {"seen": 3}}}
        writer.region("cortex", config={"tau_ms": 20}, metadata=tree)
    state = BrainCheckpoint.load(tmp_path / "a.thalia")
    assert dict(state.regions["cortex"]) == {"seen": 3, "config": {"tau_ms": 20}}
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    with thalia.open(tmp_path / "b.thalia") as file:
        assert file["cortex"].config == {"tau_ms": 20}


def test_what_is_taken_away_or_changed_is_so(tmp_path):
    write(tmp_path / "a.thalia")
    state = BrainCheckpoint.load(tmp_path / "a.thalia")
    cortex = state.regions["cortex"]
    assert isinstance(cortex, BrainRegion) and cortex.facts.n_neurons == 40 and cortex.facts.metadata["axes"] == AXES
    cortex.facts.neuron_type = "none"
    cortex.facts.metadata["more"] = float("inf")
    cortex["config"]["v_rest"] = -70.0
    state["connections"][0]["weights"] += 1
    del state["connections"][1]
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    found = BrainCheckpoint.load(tmp_path / "b.thalia")
    facts = found.regions["cortex"].facts
    assert facts.neuron_type == "none" and facts.metadata == {"axes": AXES, **NOTES, "more": float("inf")}
    assert found.regions["cortex"]["config"]["v_rest"] == -70.0
    assert [c["source"] for c in found.connections] == ["cortex"] and found.connections[0]["weights"][3, 4] == 1.5
    del found["connections"]
    del found["regions"][LONG]
    BrainCheckpoint.save(found, tmp_path / "c.thalia")
    with thalia.open(tmp_path / "c.thalia") as file:
        assert not file.connections and LONG not in file
    found.regions["cortex"].facts.metadata["thalia_state"] = {}
    with pytest.raises(thalia.UsageError, match="thalia_state"):
        BrainCheckpoint.save(found, tmp_path / "c.thalia")
    assert beside(tmp_path / "c.thalia")[0]["cortex"][0] == (40, 30, "none", 1234)


def test_a_state_of_ones_own_may_say_it(tmp_path):
    region = BrainRegion(
        {"weights": {"w": np.ones((4, 3))}},
        RegionFacts(4, 3, "lif", metadata={"axes": {"weights.w": ["neurons", "x"]}}),
    )
    wires = [{"source": "a", "target": "pathway:b", "weights": np.ones((4, 2)), "delays": None}]
    brain = {"regions": {"a": region}, "pathways": {"b": {}}, "connections": wires}
    BrainCheckpoint.save(brain, tmp_path / "a.thalia")
    with thalia.open(tmp_path / "a.thalia") as file:
        assert (file["a"].n_neurons, file["a"].neuron_type, len(file.connections)) == (4, "lif", 1)
    found = BrainCheckpoint.load(tmp_path / "a.thalia")
    assert list(found) == [*brain, "metadata"] and found["connections"] is found.connections
    assert found.connections[0]["weights"].tolist() == wires[0]["weights"].tolist()
    # Any other list under that name is a member as others are.
    for other in ([], [1], [{"source": "a"}], [wires[0], wires[0]], (wires[0],), [{**wires[0], "more": 1}], {"a": 1}):
        BrainCheckpoint.save({**brain, "connections": other}, tmp_path / "b.thalia")
        assert repr(BrainCheckpoint.load(tmp_path / "b.thalia")["connections"]) == repr(other)


def test_numbers_follow_a_state_that_has_grown(tmp_path):
    write(tmp_path / "a.thalia")
    brain = BrainCheckpoint.load(tmp_path / "a.thalia", into=Brain())
    weights = brain.regions["cortex"]["weights"]
    weights["w_ff"] = np.ones((48, 36), np.float32)
    weights["w_rec"] = np.ones((48, 48), np.float32)
    brain.regions["cortex"]["homeostatic"]["thresholds"] = np.ones(48)
    brain.regions[LONG]["weights"]["w"] = np.ones((9, 48))
    with pytest.warns(UserWarning, match=r"shape \[40, 8\].* between 48 and 9 neurons") as warned:
        BrainCheckpoint.save(brain, tmp_path / "b.thalia")
    assert {each.filename for each in warned} == {__file__}
    with thalia.open(tmp_path / "b.thalia") as file:
        assert (file["cortex"].n_neurons, file["cortex"].n_inputs) == (48, 36)
        assert file[LONG].n_neurons == 9
    # Without agreement nothing is said, and what is said is held against the shapes.
    state = BrainCheckpoint.load(tmp_path / "a.thalia")
    state.regions["cortex"]["weights"]["w_ff"] = np.ones((41, 30), np.float32)
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    with thalia.open(tmp_path / "b.thalia") as file:
        assert file["cortex"].n_neurons == 0
    state.regions["cortex"]["homeostatic"] = {"thresholds": np.ones(41)}
    state.regions["cortex"].facts.n_neurons = 42
    with pytest.raises(thalia.UsageError, match=r"'cortex'.*homeostatic.thresholds.*\[41\].*\[42\]"):
        BrainCheckpoint.save(state, tmp_path / "b.thalia")


def test_a_curriculum_keeps_it(tmp_path):
    folder = tmp_path / "run"
    trainer = CurriculumTrainer(BrainCheckpoint.load(write_at(tmp_path / "a.thalia"), into=Brain()), folder)
    first = trainer.train_stage(StageConfig(1))
    assert beside_of(first) == beside_of(tmp_path / "a.thalia")
    assert BrainCheckpoint.load(first).metadata["description"] == "a file of others"
    with thalia.open(first) as file:
        metadata = {**file.metadata, "mine": 5, "training_info": {**file.metadata["training_info"], "dataset": "x"}}
    state = BrainCheckpoint.load(first)
    BrainCheckpoint.save(state, first, metadata=metadata)
    for delta in (False, True):
        trainer = CurriculumTrainer(Brain(), folder, delta=delta)
        assert trainer.resume()
        path = trainer.train_stage(StageConfig(2))
        assert beside_of(path) == beside_of(tmp_path / "a.thalia")
        with thalia.open(path) as file:
            info = file.metadata["training_info"]
            assert file.metadata["mine"] == 5 and info["dataset"] == "x" and info["curriculum_stage"] == trainer.stage


def test_a_curriculum_waits_for_a_save_in_its_folder(tmp_path):
    trainer = CurriculumTrainer(BrainCheckpoint.load(write_at(tmp_path / "a.thalia"), into=Brain()), tmp_path / "run")
    saved = []
    thread = threading.Thread(target=lambda: saved.append(trainer.train_stage(StageConfig(1))))
    with _core.HeldFolder.hold(tmp_path / "run", {}):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not saved and list((tmp_path / "run").iterdir()) == []
    thread.join()
    assert [path.name for path in saved] == ["stage1.thalia"]


def test_a_guess_of_neurons_is_one_that_saving_takes(tmp_path):
    region = {
        "neuron_state": {"membrane": np.zeros((2, 3))},
        "homeostatic": {"thresholds": np.zeros(6)},
        "learning_state": {"synapse_age": {"w": np.zeros((6, 2)), "mine": np.zeros(5)}},
        "weights": {"w": np.zeros((6, 2))},
    }
    wrong = [
        ("homeostatic", {"thresholds": np.zeros(5)}),
        ("learning_state", {"silent_steps": np.zeros((6, 1))}),
        ("learning_state", {"synapse_importance": {"w": np.zeros((2, 6))}}),
    ]
    found = []
    for other in ({}, *({component: value} for component, value in wrong)):
        BrainCheckpoint.save({"regions": {"a": {**region, **other}}}, tmp_path / "b.thalia")
        with thalia.open(tmp_path / "b.thalia") as file:
            found.append(file["a"].n_neurons)
    assert found == [6, 0, 0, 0]


def write_at(path):
    write(path)
    return path


def beside_of(path):
    regions, wired, _, steps = beside(path)
    return regions, wired, steps


@pytest.mark.parametrize("way", WAYS)
def test_the_program_grows_what_was_loaded_and_saved(way, tmp_path, run_program):
    write(tmp_path / "a.thalia")
    for policy in (None, "fp16"):
        BrainCheckpoint.save(way(tmp_path / "a.thalia"), tmp_path / "b.thalia", precision_policy=policy)
        for path in (tmp_path / "a.thalia", tmp_path / "b.thalia"):
            grown = tmp_path / "grown.thalia"
            grown.write_bytes(path.read_bytes())
            assert json.loads(run_program("grow", grown, "cortex", "--neurons", "4", "--json"))
        found = BrainCheckpoint.load(grown)
        assert found.regions["cortex"].facts.n_neurons == 44 and found.connections[0]["weights"].shape == (44, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            BrainCheckpoint.save(found, tmp_path / "c.thalia")
        again, expected = beside_of(tmp_path / "c.thalia"), beside_of(grown)
        assert again[0] == expected[0] and again[1].keys() == expected[1].keys()
