"""Brains that grow, are pruned and measured, in memory and in files. docs/format/growth.md."""

import copy
import dataclasses
import hashlib
import math
import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import thalia_checkpoint as thalia
from brain_test import Brain, same
from thalia_checkpoint import brain as tb
from thalia_checkpoint.brain import BrainCheckpoint, BrainRegion, RegionFacts

WINDOW = 50_000


def cortex(n=6):
    rng = np.random.default_rng(5)
    return BrainRegion(
        {
            "config": {"n_output": n, "n_input": 4, "tau_ms": 20.0, "v_rest": -65.0},
            "weights": {
                "w_ff": rng.random((n, 4)).astype(np.float32),
                "w_rec": rng.random((n, n)).astype(np.float32),
                "bias": np.ones(n, np.float32),
            },
            "homeostatic": {"thresholds": np.arange(1, n + 1, dtype=np.float32)},
            "region_state": {"membrane": np.full(n, -50.0), "spikes": np.zeros(n, bool)},
            "learning_state": {"stp": {"u": np.full(n, 0.5, np.float32)}},
            "notes": ["a", (1, np.arange(3))],
        },
        RegionFacts(n_neurons=n, n_inputs=4),
    )


def state(n=6, step=100_000):
    return {
        "regions": {
            "cortex": cortex(n),
            "striatum": BrainRegion(
                {"weights": {"cortex": np.ones((3, n), np.float32)}}, RegionFacts(n_neurons=3, n_inputs=n)
            ),
        },
        "connections": [
            {
                "source": "cortex",
                "target": "striatum",
                "weights": np.ones((n, 3), np.float32),
                "delays": np.full((n, 3), 2.0),
            }
        ],
        "training_steps": step,
    }


def prunable():
    """A region of which some synapses, and neuron 2, are dead."""
    brain = state()
    weights = brain["regions"]["cortex"]["weights"]
    weights["w_ff"][2] = 0.001
    weights["w_rec"][:] = 0.5
    weights["w_rec"][2, :] = weights["w_rec"][:, 2] = 0.0
    weights["bias"][:] = 0
    shape = weights["w_ff"].shape
    brain["regions"]["cortex"]["learning_state"] |= {
        "synapse_age": {"w_ff": np.full(shape, 20_000)},
        "synapse_importance": {"w_ff": np.zeros(shape)},
        "importance_window_steps": WINDOW,
        "silent_steps": np.array([0, 0, 200_000, 0, 0, 0]),
    }
    brain["regions"]["striatum"]["weights"]["cortex"][:, 2] = 0
    brain["connections"][0]["weights"][2] = 0
    brain["task_change"] = {"active": False, "step": 0}
    return brain


def philox(counter, key):
    """Philox 4x32-10, as its authors describe it."""
    for _ in range(10):
        low, high = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            (high >> 32) ^ counter[1] ^ key[0],
            high & 0xFFFFFFFF,
            (low >> 32) ^ counter[3] ^ key[1],
            low & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def drawn(seed, region, path, row, column, sparsity=0.1, scale=0.3):
    """docs/format/growth.md, "Drawn weights"."""
    digest = hashlib.sha256(seed.to_bytes(8, "little") + region.encode() + b"\0" + path.encode()).digest()
    key = [int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")]
    x = philox([row & 0xFFFFFFFF, row >> 32, column & 0xFFFFFFFF, column >> 32], key)
    u = ((x[1] << 32 | x[2]) >> 11) * 2.0**-53
    return np.float32(u * scale if x[0] * 2.0**-32 < sparsity else 0)


def test_new_neurons_are_rows_and_nothing_else_changes():
    brain, old = state(), state()
    region = brain["regions"]["cortex"]
    kept = region["notes"], region["notes"][1][1], region["weights"]
    result = tb.grow_output(brain, "cortex", 2, seed=7, reason="more words")
    assert (result.neurons_added, result.n_neurons, result.nothing_done) == (2, 8, "")
    assert ("cortex", "weights.w_ff", (6, 4), (8, 4)) in [
        (t.region, t.path, t.old_shape, t.new_shape) for t in result.tensors
    ]
    assert len(result.tensors) == 9 and result.targets_left == ("striatum",)
    # The same dictionaries, lists and arrays, but for those that have grown.
    assert brain["regions"]["cortex"] is region
    assert kept[0] is region["notes"] and kept[1] is region["notes"][1][1] and kept[2] is region["weights"]
    for name, shape in {"w_ff": (8, 4), "w_rec": (8, 8), "bias": (8,)}.items():
        was, now = old["regions"]["cortex"]["weights"][name], region["weights"][name]
        assert now.shape == shape and now.dtype == np.float32
        assert now[tuple(map(slice, was.shape))].tobytes() == was.tobytes()
    assert region["homeostatic"]["thresholds"].tolist() == [1, 2, 3, 4, 5, 6, 3.5, 3.5]
    assert region["region_state"]["membrane"].tolist()[6:] == [-65.0, -65.0]
    assert region["region_state"]["spikes"].dtype == bool
    assert region["config"] == {"n_output": 8, "n_input": 4, "tau_ms": 20.0, "v_rest": -65.0}
    assert type(region["config"]["n_output"]) is int and type(region["config"]["tau_ms"]) is float
    assert region.facts.n_neurons == 8 and region.facts.n_inputs == 4
    connection = brain["connections"][0]
    assert connection["weights"].shape == (8, 3) and np.array_equal(connection["delays"], np.full((8, 3), 2.0))
    assert brain["regions"]["striatum"]["weights"]["cortex"].shape == (3, 6)
    (event,) = brain["growth_history"]
    assert event["region"] == "cortex" and event["neurons_added"] == 2 and event["reason"] == "more words"
    assert event["step"] == 100_000 and (event["old_size"], event["new_size"]) == (6, 8) and event["type"] == "growth"


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_weights_are_drawn_as_the_page_says(seed):
    brain = state()
    tb.grow_output(brain, "cortex", 3, sparsity=0.5, seed=seed)
    region = brain["regions"]["cortex"]["weights"]
    for path, rows, columns in [("w_ff", range(6, 9), range(4)), ("w_rec", range(9), range(9))]:
        for row in rows:
            for column in columns:
                if row >= 6 or column >= 6:
                    wanted = drawn(seed, "cortex", f"weights.{path}", row, column, sparsity=0.5)
                    assert region[path][row, column] == wanted, (path, row, column)
    connection = brain["connections"][0]["weights"]
    assert connection[7, 1] == drawn(seed, "cortex->striatum", "weights", 7, 1, sparsity=0.5)
    assert np.count_nonzero(region["w_rec"][6:]) > 0


def test_the_program_draws_the_same(tmp_path, run_program):
    for name in ("a", "b", "c"):
        BrainCheckpoint.save(state(), tmp_path / f"{name}.thalia", durability="none")
    run_program("grow", tmp_path / "a.thalia", "cortex", "--neurons", "5", "--seed", "9", "--init", "xavier")
    done = tb.grow_file(tmp_path / "b.thalia", "cortex", 5, seed=9, initialization="xavier")
    assert done.growth.n_neurons == 11 and done.append.generation == 2 and done.restored == ()
    tb.grow_output(tmp_path / "c.thalia", "cortex", 5, "xavier", seed=9, out=tmp_path / "d.thalia")
    memory = state()
    tb.grow_output(memory, "cortex", 5, "xavier", seed=9)
    found = [BrainCheckpoint.load(tmp_path / f"{name}.thalia") for name in ("a", "b", "d")]
    for one in found:
        assert same(one["regions"], memory["regions"])
        assert same(one["connections"], memory["connections"])
        assert one.metadata["growth_history"] == memory["growth_history"]
        assert one.regions["cortex"].facts.n_neurons == 11


def test_sources_grow_by_columns(tmp_path):
    brain = state()
    result = tb.grow_source(brain, "striatum", "cortex", 9, "uniform", scale=2.0)
    assert result.inputs_added == 3 and result.neurons_added == 0
    weights = brain["regions"]["striatum"]["weights"]["cortex"]
    assert weights.shape == (3, 9) and np.all(weights[:, :6] == 1) and np.all(weights[:, 6:] < 2)
    assert brain["regions"]["striatum"].facts.n_inputs == 9
    assert brain["growth_history"][0]["inputs_added"] == 3 and brain["growth_history"][0]["source"] == "cortex"
    before = copy.deepcopy(brain)
    again = tb.grow_source(brain, "striatum", "cortex", 9)
    assert "9 inputs already" in again.nothing_done and again.tensors == () and same(brain, before)
    with pytest.raises(thalia.UsageError, match="cortex") as error:
        tb.grow_source(brain, "striatum", "pons", 9)
    assert error.value.code == "not_found"

    path = tmp_path / "a.thalia"
    BrainCheckpoint.save(brain, path)
    assert tb.grow_file_source(path, "striatum", "cortex", 2).growth.inputs_added == 2
    assert BrainCheckpoint.load(path).regions["striatum"]["weights"]["cortex"].shape == (3, 11)


def test_targets_grow_where_they_are_asked_to():
    brain = state()
    result = tb.grow_output(brain, "cortex", 2, grow_targets=True)
    assert result.targets_left == () and brain["regions"]["striatum"]["weights"]["cortex"].shape == (3, 8)
    assert brain["regions"]["striatum"].facts.n_inputs == 8


def test_axes_may_be_told():
    brain = state()
    brain["regions"]["cortex"]["other"] = np.zeros((6, 6))
    before = copy.deepcopy(brain)
    with pytest.raises(thalia.UsageError, match="other") as error:
        tb.grow_output(brain, "cortex", 1)
    assert error.value.code == "wrong_state" and same(brain, before)
    tb.grow_output(brain, "cortex", 1, axes={"other": ["fixed", "neurons"]})
    assert brain["regions"]["cortex"]["other"].shape == (6, 7)
    brain["regions"]["cortex"].facts.metadata["axes"] = {"other": ["fixed", "neurons"]}
    tb.grow_output(brain, "cortex", 1)
    assert brain["regions"]["cortex"]["other"].shape == (6, 8)
    for axes in ({"other": ["neurons", "neurons"]}, {"other": ["neurons"]}):
        with pytest.raises(thalia.UsageError) as error:
            tb.grow_output(brain, "cortex", 1, axes=axes)
        assert error.value.code == "size_mismatch"


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        (("pons", 2), {}, None),
        (("cortex", -1), {}, "n_new"),
        (("cortex", 1.5), {}, "n_new"),
        (("cortex", True), {}, "n_new"),
        (("cortex", 1 << 32), {}, "n_new"),
        (("cortex", (1 << 32) - 1), {}, "n_new"),
        (("cortex", 2, "random"), {}, "initialization"),
        (("cortex", 2), {"sparsity": math.nan}, "sparsity"),
        (("cortex", 2), {"sparsity": 1.5}, "sparsity"),
        (("cortex", 2), {"sparsity": "0.5"}, "sparsity"),
        (("cortex", 2), {"scale": math.inf}, "scale"),
        (("cortex", 2), {"scale": -math.nan}, "scale"),
        (("cortex", 2), {"seed": -1}, "seed"),
        (("cortex", 2), {"axes": ["neurons"]}, "axes"),
        (("cortex", 2), {"axes": {"weights.w_ff": "neurons"}}, "axes.weights.w_ff"),
        (("cortex", 2), {"out": "new.thalia"}, "out"),
        ((3, 2), {}, "region"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(arguments, options, field):
    brain, before = state(), state()
    with pytest.raises(thalia.UsageError) as error:
        tb.grow_output(brain, *arguments, **options)
    assert error.value.field == field
    assert same(brain, before) and brain["regions"]["cortex"].facts.n_neurons == 6


def test_brains_that_cannot_grow():
    with pytest.raises(thalia.UsageError, match="without neurons") as error:
        tb.grow_output({"regions": {"cortex": {"weights": {"w": np.ones((3, 4))}}}}, "cortex", 1)
    assert error.value.code == "wrong_state"
    for brain in (None, 3, [state()], object()):
        with pytest.raises(thalia.UsageError, match="brain"):
            tb.grow_output(brain, "cortex", 1)
    with pytest.raises(thalia.UnsupportedError, match=r"cortex\.odd"):
        tb.grow_output({"regions": {"cortex": {"odd": object()}}}, "cortex", 1)
    with pytest.raises(TypeError, match="sparsity"):
        tb.grow_output(state(), "cortex", 1, sparcity=0.2)
    with pytest.raises(TypeError, match="sparcity"):
        tb.auto_grow(state(), sparcity=0.2)
    with pytest.raises(thalia.MissingFileError):
        tb.grow_output("nowhere.thalia", "cortex", 1, out="new.thalia")


def test_arrays_that_cannot_be_written_to_are_replaced():
    brain = prunable()
    weights = brain["regions"]["cortex"]["weights"]
    old = weights["w_ff"]
    for array in weights.values():
        array.flags.writeable = False
    before = old.copy()
    assert tb.prune_synapses(brain, "cortex").synapses_removed == 4
    tb.grow_output(brain, "cortex", 1)
    assert np.array_equal(old, before) and weights["w_ff"] is not old and weights["w_ff"].shape == (7, 4)


def test_types_and_layouts_of_arrays():
    brain = state()
    weights = brain["regions"]["cortex"]["weights"]
    weights["big"] = np.ones((6, 2), ">f4")
    weights["fortran"] = np.asfortranarray(np.arange(12.0).reshape(6, 2))
    weights["half"] = np.ones((6, 3), np.float16)[::1]
    weights["strided"] = np.arange(24.0).reshape(12, 2)[::2]
    old = {name: array.copy() for name, array in weights.items()}
    tb.grow_output(brain, "cortex", 2)
    for name, array in old.items():
        assert weights[name].dtype == array.dtype, name
        assert np.array_equal(weights[name][tuple(map(slice, array.shape))], array), name


@dataclasses.dataclass(frozen=True)
class Config:
    n_neurons: int
    tau: float
    v_rest: float = -70.0


Pair = namedtuple("Pair", "pre post")


class Traces:
    def __init__(self, n):
        self.trace = np.ones(n)

    def state_dict(self):
        return {"trace": self.trace}

    def load_state_dict(self, found):
        self.trace = found["trace"]


def test_containers_of_all_kinds_keep_what_has_grown():
    n = 6
    traces, config = Traces(n), Config(n, 20.0)
    region = BrainRegion(
        {
            "config": config,
            "weights": OrderedDict(w_ff=np.ones((n, 4), np.float32)),
            "region_state": {"membrane": np.full(n, -60.0)},
            "learning_state": {"pair": Pair(np.zeros(n), np.zeros(2)), "list": [np.ones(n), 3], 7: np.ones(n)},
            "traces": traces,
        },
        RegionFacts(n_neurons=n),
    )
    brain = {"regions": {"cortex": region}}
    tb.grow_output(brain, "cortex", 2)
    assert region["config"] is config and config == Config(8, 20.0)
    assert type(region["weights"]) is OrderedDict and region["weights"]["w_ff"].shape == (8, 4)
    assert region["region_state"]["membrane"].tolist() == [-60.0] * 6 + [-70.0] * 2
    learning = region["learning_state"]
    assert type(learning["pair"]) is Pair and learning["pair"].pre.shape == (8,) and learning["pair"].post.shape == (2,)
    assert learning["list"][0].shape == (8,) and learning["list"][1] == 3 and learning[7].shape == (8,)
    assert region["traces"] is traces and traces.trace.tolist() == [1.0] * 6 + [0.0] * 2


class Stubborn(Traces):
    load_state_dict = None


def test_an_object_that_cannot_take_its_change_back_stops_all_of_it():
    brain = state()
    brain["regions"]["cortex"]["traces"] = Stubborn(6)
    before = copy.deepcopy(brain["regions"]["cortex"]["weights"])
    with pytest.raises(thalia.UnsupportedError, match=r"cortex\.traces"):
        tb.grow_output(brain, "cortex", 2)
    assert same(brain["regions"]["cortex"]["weights"], before) and "growth_history" not in brain
    tb.grow_source(brain, "striatum", "cortex", 7)  # it has not changed


class Growing(Brain):
    """Builds its state anew each time, and keeps its history itself."""

    def __init__(self, members):
        super().__init__(members)
        self.growth_history = []
        self.loads = 0

    def get_full_state(self):
        return {"regions": dict(self.members["regions"]), "training_steps": 5}

    def load_full_state(self, members):
        self.members = members
        self.loads += 1


def test_objects_get_their_state_back(tmp_path):
    brain = Growing(state())
    tb.grow_output(brain, "cortex", 2)
    assert brain.loads == 1 and brain.members["regions"]["cortex"]["weights"]["w_ff"].shape == (8, 4)
    assert [event["neurons_added"] for event in brain.growth_history] == [2]
    assert tb.capacity_metrics(brain, "cortex").neuron_count == 8 and brain.loads == 1
    BrainCheckpoint.save(brain, tmp_path / "a.thalia")
    assert BrainCheckpoint.info(tmp_path / "a.thalia")["growth_history"] == brain.growth_history

    other = Brain({"regions": {"cortex": cortex()}})
    tb.grow_output(other, "cortex", 1)
    BrainCheckpoint.save(other, tmp_path / "b.thalia")
    (event,) = BrainCheckpoint.info(tmp_path / "b.thalia")["growth_history"]
    assert event["new_size"] == 7

    class Saving:
        def get_full_state(self):
            return state()

    with pytest.raises(thalia.UsageError, match="load_full_state"):
        tb.grow_output(Saving(), "cortex", 1)
    assert tb.check_growth_needs(Saving())["cortex"].neuron_count == 6


def test_regions_may_be_objects():
    region = Brain(dict(cortex()))
    brain = {"regions": {"cortex": region}}
    region.members["region_state"] = {"membrane": np.zeros(6)}
    tb.grow_output(brain, "cortex", 2)
    assert region.members["weights"]["w_rec"].shape == (8, 8) and brain["regions"]["cortex"] is region


def test_a_state_that_was_loaded_grows_saves_and_is_undone(tmp_path):
    BrainCheckpoint.save(prunable(), tmp_path / "a.thalia", metadata={"experiment": 4})
    brain = BrainCheckpoint.load(tmp_path / "a.thalia")
    first = copy.deepcopy(brain["regions"])
    pruned = tb.prune_synapses(brain, "cortex")
    assert pruned.synapses_removed == 4 and pruned.regions_affected == ("cortex",)
    assert not np.any(brain.regions["cortex"]["weights"]["w_ff"][2])
    brain["pruning"] = pruned.log
    tb.grow_source(brain, "striatum", "cortex", 8)
    BrainCheckpoint.save(brain, tmp_path / "b.thalia")

    again = BrainCheckpoint.load(tmp_path / "b.thalia")
    assert [event["type"] for event in again.metadata["growth_history"]] == ["pruning", "growth"]
    tb.undo_pruning(again, again["pruning"])
    assert same(again.regions["cortex"], first["cortex"])
    assert again.regions["striatum"]["weights"]["cortex"].shape == (3, 8)
    BrainCheckpoint.save(again, tmp_path / "c.thalia")
    info = BrainCheckpoint.info(tmp_path / "c.thalia")
    assert len(info["growth_history"]) == 3 and info["metadata"]["experiment"] == 4
    BrainCheckpoint.save(again, tmp_path / "c.thalia", metadata={"experiment": 5})
    assert BrainCheckpoint.info(tmp_path / "c.thalia")["growth_history"] == info["growth_history"]
    assert BrainCheckpoint.validate(tmp_path / "c.thalia").valid


def test_growth_goes_on_from_file_to_file(tmp_path):
    a, b, c, d = (tmp_path / f"{name}.thalia" for name in "abcd")
    BrainCheckpoint.save(prunable(), a, precision_policy="fp16", metadata={"experiment": 4})
    old = a.read_bytes()
    assert tb.grow_output(a, "cortex", 2, seed=3, out=b, save={"compression": "zstd"}).n_neurons == 8
    assert a.read_bytes() == old
    with thalia.open(b) as file:
        assert file["cortex"]["w_ff"].dtype == "f16"  # as the policy of the file has it
    pruned = tb.prune_synapses(b, "cortex", importance_history_window=WINDOW, out=c)
    assert "synapse_age" in str(pruned.spared) or pruned.synapses_removed == 4
    removed = tb.remove_neurons(a, "cortex", 3, out=d)
    assert removed.neurons == (2,) and BrainCheckpoint.load(d).regions["cortex"]["weights"]["w_rec"].shape == (5, 5)
    tb.undo_pruning(d, removed, out=tmp_path / "e.thalia")
    assert same(BrainCheckpoint.load(tmp_path / "e.thalia")["regions"], BrainCheckpoint.load(a)["regions"])
    assert BrainCheckpoint.load(b).metadata["experiment"] == 4
    assert tb.capacity_metrics(b, "cortex").neuron_count == 8
    with pytest.raises(thalia.ExistsError):
        tb.grow_output(a, "cortex", 2, out=b)
    tb.grow_output(a, "cortex", 4, out=b, save={"replace": True})
    assert BrainCheckpoint.info(b)["growth_history"][0]["neurons_added"] == 4
    with pytest.raises(thalia.UsageError, match="file that is read"):
        tb.grow_output(a, "cortex", 2, out=a)
    with pytest.raises(thalia.UsageError, match="grow_file"):
        tb.grow_output(a, "cortex", 2)
    with pytest.raises(thalia.UsageError):
        tb.grow_output(a, "pons", 2, out=tmp_path / "never.thalia")
    assert not (tmp_path / "never.thalia").exists()


def test_a_file_grows_in_place_or_not_at_all(tmp_path):
    path = tmp_path / "a.thalia"
    BrainCheckpoint.save(state(), path)
    old = path.read_bytes()
    for arguments, options in [
        (("pons", 1), {}),
        (("cortex", 1), {"grow_targets": True}),
        (("cortex", 1), {"scale": math.inf}),
    ]:
        with pytest.raises(thalia.UsageError):
            tb.grow_file(path, *arguments, **options)
    with pytest.raises(thalia.UsageError):
        tb.grow_file_source(path, "cortex", "pons", 1)
    assert path.read_bytes() == old
    BrainCheckpoint.save_delta(state(), tmp_path / "b.delta.thalia", path)
    with pytest.raises(thalia.UnsupportedError):
        tb.grow_file(tmp_path / "b.delta.thalia", "cortex", 1)
    with pytest.raises(thalia.UsageError, match="compression"):
        tb.grow_file(path, "cortex", 1, compression="auto")
    with pytest.raises(TypeError, match="did you mean 'compression'"):
        tb.grow_file(path, "cortex", 1, compresion="zstd")
    with pytest.raises(TypeError, match="did you mean 'sparsity'"):
        tb.grow_file_source(path, "cortex", "cortex", 1, sparsty=0.5)


@pytest.mark.parametrize("config", [Config(6, 20.0), {"n_neurons": 6, "n_output": 7, "v_rest": np.float32(-70.0)}])
def test_configs_that_lie_among_the_state_grow_in_files_too(tmp_path, config):
    region = {"config": config, "region_state": {"pair": (np.zeros(6), 2), "membrane": np.zeros(6)}}
    path = tmp_path / "a.thalia"
    BrainCheckpoint.save({"regions": {"cortex": BrainRegion(region, RegionFacts(n_neurons=6))}}, path)
    with thalia.open(path) as file:
        assert file["cortex"].config == {}
    tb.grow_file(path, "cortex", 2)
    found = BrainCheckpoint.load(path, classes=[Config]).regions["cortex"]
    wanted = Config(8, 20.0) if isinstance(config, Config) else {**config, "n_neurons": 8}
    assert found["config"] == wanted and found["region_state"]["pair"][0].shape == (8,)
    with thalia.open(path) as file:
        assert file["cortex"].config == {}
    assert BrainCheckpoint.validate(path).valid


def test_what_is_not_known_to_be_unused_stays():
    brain = state()
    result = tb.prune_synapses(brain, "cortex")
    assert result.synapses_removed == 0 and "task_change" in result.spared[0] and "growth_history" not in brain
    assert result.log is None
    tb.undo_pruning(brain, result)
    assert same(brain, state())
    brain = prunable()
    assert tb.prune_synapses(brain, "cortex", task_is_changing=True).synapses_removed == 0
    assert tb.prune_synapses(brain, "cortex", protected=["cortex"]).synapses_removed == 0
    assert tb.prune_synapses(brain, "cortex", min_age=30_000).synapses_removed == 0
    assert tb.prune_synapses(brain, "cortex", importance_history_window=WINDOW + 1).synapses_removed == 0
    assert tb.remove_neurons(brain, "cortex", 1, min_silent=300_000).neurons == ()
    assert tb.remove_neurons(brain, "cortex", 1, protected_neurons=[2]).neurons == ()
    assert tb.prune_synapses(brain, "cortex").synapses_removed == 4
    for options in ({"threshold": math.nan}, {"threshold": -1}, {"importance_threshold": math.inf}, {"min_age": -1}):
        with pytest.raises(thalia.UsageError):
            tb.prune_synapses(brain, "cortex", **options)
    with pytest.raises(thalia.UsageError, match="least_active"):
        tb.remove_neurons(brain, "cortex", 1, strategy="random")
    with pytest.raises(thalia.UsageError, match="n_remove"):
        tb.remove_neurons(brain, "cortex", -1)
    with pytest.raises(thalia.UsageError, match="protected"):
        tb.prune_synapses(brain, "cortex", protected="cortex")


def test_removed_neurons_come_back():
    brain, before = prunable(), prunable()
    result = tb.remove_neurons(brain, "cortex", 5, reason="tidy")
    assert result.neurons == (2,) and result.neurons_removed == 1
    assert brain["regions"]["cortex"]["weights"]["w_rec"].shape == (5, 5)
    assert brain["regions"]["cortex"].facts.n_neurons == 5 and brain["regions"]["cortex"]["config"]["n_output"] == 5
    assert brain["regions"]["striatum"]["weights"]["cortex"].shape == (3, 5)
    assert brain["connections"][0]["weights"].shape == (5, 3)
    tb.undo_pruning(brain, result.log)
    events = brain.pop("growth_history")
    assert [event["type"] for event in events] == ["pruning", "growth"] and events[0]["reason"] == "tidy"
    assert same(brain, before) and brain["regions"]["cortex"].facts == before["regions"]["cortex"].facts


def test_a_log_that_is_none():
    brain = prunable()
    log = tb.prune_synapses(brain, "cortex").log
    before = copy.deepcopy(brain)
    for wrong in (
        {},
        {**log, "version": 2},
        {**log, "tensors": [{**log["tensors"][0], "region": "pons"}]},
        {**log, "tensors": [{**log["tensors"][0], "positions": np.array([10**9], np.uint64)}]},
        {**log, "tensors": [{**log["tensors"][0], "positions": np.array([1, 0, 2, 3], np.uint64)}]},
        {**log, "tensors": [{**log["tensors"][0], "values": np.zeros(3, np.float32)}]},
        {**log, "tensors": [{**log["tensors"][0], "values": object()}]},
        {**log, 3: 4},
        None,
        [],
    ):
        with pytest.raises(thalia.UsageError):
            tb.undo_pruning(brain, wrong)
        assert same(brain, before)
    tb.undo_pruning(brain, log)
    assert np.all(brain["regions"]["cortex"]["weights"]["w_ff"][2] == np.float32(0.001))


def test_capacity_and_automatic_growth():
    brain = state()
    brain["regions"]["cortex"]["learning_state"]["firing_rate"] = 0.95
    metrics = tb.capacity_metrics(brain, "cortex")
    weights = [brain["regions"]["cortex"]["weights"][name] for name in ("w_ff", "w_rec")]
    count = sum(w.size for w in weights)
    saturated = sum(np.count_nonzero(w > 0.9 * w.max()) for w in weights) / count
    used = sum(np.count_nonzero(w > 0.1) for w in weights) / count
    assert metrics.neuron_count == 6 and metrics.synapse_count == count
    assert math.isclose(metrics.firing_rate, 0.95) and math.isclose(metrics.weight_saturation, saturated)
    assert math.isclose(metrics.utilization, 0.4 * 0.95 + 0.4 * saturated + 0.2 * used)
    assert metrics.growth_recommended and metrics.growth_reason == "firing_rate" and metrics.growth_amount == 10
    assert not metrics.pruning_safe and tb.capacity_metrics(prunable(), "cortex").pruning_safe
    assert tb.get_capacity_metrics is tb.capacity_metrics
    needs = tb.check_growth_needs(brain)
    assert list(needs) == ["cortex", "striatum"] and needs["cortex"] == metrics

    assert tb.auto_grow(brain, 1.0) == {}
    grown = tb.auto_grow(brain, 0.5, seed=4)
    assert {name: result.neurons_added for name, result in grown.items()} == {
        name: (needs[name].growth_amount or 8) for name in grown
    }
    assert brain["regions"]["cortex"].facts.n_neurons == 16
    assert brain["growth_history"][0]["reason"] == "firing_rate"
    for threshold in (-0.1, 1.1, math.nan, "0.5", None):
        with pytest.raises(thalia.UsageError, match="threshold"):
            tb.auto_grow(brain, threshold)
    with pytest.raises(thalia.UsageError) as error:
        tb.capacity_metrics(brain, "pons")
    assert error.value.code == "not_found"


def test_automatic_pruning_is_off_by_itself():
    brain = prunable()
    before = copy.deepcopy(brain)
    assert tb.auto_prune(brain) == {} and same(brain, before)
    with pytest.raises(thalia.UsageError, match="safety_level"):
        tb.auto_prune(brain, enable=True, safety_level="reckless")
    done = tb.auto_prune(brain, enable=True)
    assert done["cortex"].synapses_removed == 4 and done["striatum"].synapses_removed == 0
    tb.undo_pruning(brain, done["cortex"])
    del brain["growth_history"]
    assert same(brain, before)
    brain["regions"]["cortex"]["weights"]["w_ff"][:] = 0.015
    assert tb.auto_prune(brain, enable=True)["cortex"].synapses_removed == 0
    assert tb.auto_prune(brain, enable=True, safety_level="aggressive")["cortex"].synapses_removed == 24
    assert brain["growth_history"][-1]["safety_level"] == "aggressive"


def test_an_older_state_is_loaded_into_a_larger_one(tmp_path):
    older = state(4, step=70)
    older["regions"]["cortex"]["learning_state"]["tau"] = 3.5
    older["growth_history"] = [{"step": 3, "region": "cortex", "neurons_added": 1}]
    path = tmp_path / "older.thalia"
    BrainCheckpoint.save(older, path, metadata={"experiment": 4})
    for source in (older, path, BrainCheckpoint.load(path), Brain(older)):
        target, before = state(), state()
        region = target["regions"]["cortex"]
        result = tb.load_into(target, source)
        assert result.tensors_in_corner > 0 and result.regions_grown == () and result.left_out == ()
        w_ff = region["weights"]["w_ff"]
        assert np.array_equal(w_ff[:4], older["regions"]["cortex"]["weights"]["w_ff"])
        assert np.array_equal(w_ff[4:], before["regions"]["cortex"]["weights"]["w_ff"][4:])
        assert target["regions"]["cortex"] is region and region["learning_state"]["tau"] == 3.5
        assert region["config"]["n_output"] == 6 and target["training_steps"] == 70
        assert [event["region"] for event in target["growth_history"]] == ["cortex", "cortex"]
    loaded = BrainCheckpoint.load(path)
    tb.load_into(loaded, state(4, step=9))
    assert loaded["training_steps"] == loaded.training_steps == 9 and loaded.metadata["experiment"] == 4

    target = state()
    with pytest.raises(thalia.UsageError) as error:
        tb.load_into(target, state(8))
    assert error.value.code == "shape_mismatch" and same(target, state())
    assert tb.load_into(target, state(8), "grow", seed=3).regions_grown == ("cortex", "striatum")
    assert same(target["regions"]["cortex"]["weights"], state(8)["regions"]["cortex"]["weights"])
    assert target["regions"]["cortex"].facts.n_neurons == 8
    with pytest.raises(thalia.UsageError, match="on_larger"):
        tb.load_into(target, state(), on_larger="shrink")


def test_an_older_file_is_loaded_into_a_larger_one(tmp_path):
    a, b, c = (tmp_path / f"{name}.thalia" for name in "abc")
    BrainCheckpoint.save(state(4, step=70), a, precision_policy="fp16", metadata={"experiment": 4})
    BrainCheckpoint.save(state(), b, precision_policy="fp16")
    result = tb.load_into(b, a, out=c)
    assert result.tensors_in_corner > 0
    found, memory = BrainCheckpoint.load(c), BrainCheckpoint.load(b)
    tb.load_into(memory, a)
    assert same(found["regions"], memory["regions"]) and found.training_steps == 70
    assert found.metadata["experiment"] == 4 and found.metadata["precision_policy"] == "fp16"
    with pytest.raises(thalia.UsageError, match="file that is read"):
        tb.load_into(b, a, out=a, save={"replace": True})


def test_results_are_values():
    brain = prunable()
    results = [
        tb.grow_output(copy.deepcopy(brain), "cortex", 2),
        tb.capacity_metrics(brain, "cortex"),
        tb.prune_synapses(copy.deepcopy(brain), "cortex"),
        tb.load_into(copy.deepcopy(brain), copy.deepcopy(brain)),
        tb.FormatMigrator.migration("0.1", "1.0"),
    ]
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert again == result and repr(again) == repr(result) and hash(again) == hash(result)
        assert repr(result).startswith(type(result).__name__ + "(")
        with pytest.raises(AttributeError):
            result.n_neurons = 3
    log = pickle.loads(pickle.dumps(results[2])).log
    assert same(log, results[2].log) and "log" not in repr(results[2])
    tb.grow_output(brain, "cortex", 1)
    assert results[1].neuron_count == 6


def test_versions_of_the_format(tmp_path):
    migrator = tb.FormatMigrator
    assert migrator.can_migrate("0.1", "1.0") and migrator.can_migrate("0.1.0", "1.0.0")
    assert migrator.can_migrate("1.0", "0.1") and not migrator.can_migrate("1.0", "2.0")
    assert migrator.migration("0.1", "1.0").automatic and not migrator.migration("0.1", "1.0").lossy
    down = migrator.migration("1.0", "0.1")
    assert down.possible and down.lossy and not down.automatic and down.reason
    for wrong in ("new", "", "1"):
        with pytest.raises(thalia.UsageError) as error:
            migrator.can_migrate(wrong, "1.0")
        assert error.value.field == "from_version"
    new, old = tmp_path / "new.thalia", tmp_path / "old.thalia"
    BrainCheckpoint.save({**state(), "connections": []}, new)
    with pytest.raises(thalia.UsageError, match="across_major"):
        migrator.migrate(new, old, "0.1")
    assert not old.exists()
    with pytest.warns(UserWarning) as warned:
        result = migrator.migrate(new, old, "0.1", across_major=True)
    assert [str(each.message) for each in warned] == [*result.warnings, *result.losses]
    assert {each.filename for each in warned} == {__file__}
    assert (result.from_, result.to) == ("1.0.0", "0.1.0") and BrainCheckpoint.info(old)["version"] == "0.1.0"
    migrator.migrate(old, tmp_path / "again.thalia", "1.0")
    weights = BrainCheckpoint.load(tmp_path / "again.thalia", framework="numpy")["regions"]["cortex"]["weights"]
    assert same(dict(weights), dict(state()["regions"]["cortex"]["weights"]))
    with pytest.raises(thalia.ExistsError):
        migrator.migrate(old, tmp_path / "again.thalia", "1.0", replace=False)
    with pytest.raises(thalia.UnsupportedError) as error:
        migrator.migrate(new, old, "2.0")
    assert error.value.code == "unsupported_version"


def test_a_curriculum_grows_a_brain_that_has_no_way_of_its_own(tmp_path):
    brain = Brain(state())
    region = brain.members["regions"]["cortex"]
    region["learning_state"]["firing_rate"] = 1.0
    region["weights"]["w_ff"][:] = region["weights"]["w_rec"][:] = 1.0
    trainer = tb.CurriculumTrainer(brain, tmp_path, growth_policy="auto", train_epoch=lambda *_: None)
    path = trainer.train_stage(tb.StageConfig(epochs=1))
    assert BrainCheckpoint.load(path).regions["cortex"]["weights"]["w_ff"].shape == (16, 4)
    assert trainer.growth_history[0] | {"region": "cortex", "neurons_added": 10} == trainer.growth_history[0]
    assert BrainCheckpoint.info(path)["growth_history"] == trainer.growth_history
