"""Brains of torch tensors that grow and are pruned: types, parameters and layouts stay what they were."""

import copy

import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from states import same_state
from thalia_checkpoint import brain as tb
from thalia_checkpoint.brain import BrainCheckpoint, BrainRegion, RegionFacts


def state(dtype=torch.float32, n=6):
    generator = torch.Generator().manual_seed(3)
    shape = (n, 4)
    weights = (0.5 + torch.rand(shape, generator=generator)).to(dtype)
    weights[2] = 0.001
    return {
        "regions": {
            "cortex": BrainRegion(
                {
                    "config": {"n_neurons": n},
                    "weights": {"w": torch.nn.Parameter(weights), "slow": torch.zeros(n, 3, dtype=torch.int64)},
                    "region_state": {"membrane": torch.zeros(n, dtype=torch.float64), "kept": np.arange(n)},
                    "learning_state": {
                        "synapse_age": {"w": torch.full(shape, 20_000)},
                        "synapse_importance": {"w": torch.zeros(shape)},
                        "importance_window_steps": 50_000,
                        "trace": torch.ones(n).to_sparse(),
                        "open": torch.ones(n, requires_grad=True),
                    },
                },
                RegionFacts(n_neurons=n),
            )
        },
        "task_change": {"active": False, "step": 0},
        "training_steps": 100_000,
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_what_grows_is_what_it_was(dtype):
    brain, before = state(dtype), state(dtype)
    result = tb.grow_output(brain, "cortex", 2, "uniform", seed=5)
    region, old = brain["regions"]["cortex"], before["regions"]["cortex"]
    assert result.n_neurons == 8 and region["config"]["n_neurons"] == 8
    w = region["weights"]["w"]
    assert type(w) is torch.nn.Parameter and w.requires_grad and w.dtype == dtype and w.shape == (8, 4)
    assert torch.equal(w[:6], old["weights"]["w"]) and w[6:].count_nonzero() > 0
    assert region["weights"]["slow"].dtype == torch.int64 and type(region["weights"]["slow"]) is torch.Tensor
    assert not region["weights"]["slow"].requires_grad and region["region_state"]["membrane"].dtype == torch.float64
    learning = region["learning_state"]
    assert learning["trace"].layout == torch.sparse_coo and learning["trace"].shape == (8,)
    assert learning["open"].requires_grad and learning["open"].is_leaf
    assert type(region["region_state"]["kept"]) is np.ndarray and region["region_state"]["kept"].shape == (8,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pruned_saved_loaded_and_undone(tmp_path, dtype):
    brain, before = state(dtype), state(dtype)
    pruned = tb.prune_synapses(brain, "cortex")
    assert pruned.synapses_removed == 4
    w = brain["regions"]["cortex"]["weights"]["w"]
    assert type(w) is torch.nn.Parameter and w[2].count_nonzero() == 0
    brain["log"] = pruned.log
    BrainCheckpoint.save(brain, tmp_path / "a.thalia")
    again = BrainCheckpoint.load(tmp_path / "a.thalia")
    tb.undo_pruning(again, again["log"])
    assert torch.equal(again.regions["cortex"]["weights"]["w"], before["regions"]["cortex"]["weights"]["w"].detach())
    tb.undo_pruning(brain, pruned)
    assert same_state(brain["regions"]["cortex"]["weights"], before["regions"]["cortex"]["weights"])


def test_numbers_are_those_of_numpy():
    brain = state()
    arrays = copy.deepcopy(state())
    region = arrays["regions"]["cortex"]
    for component in ("weights", "region_state"):
        region[component] = {
            name: x.detach().numpy() if torch.is_tensor(x) else x for name, x in region[component].items()
        }
    region["learning_state"] = {}
    tb.grow_output(brain, "cortex", 3, sparsity=0.7, seed=11)
    tb.grow_output(arrays, "cortex", 3, sparsity=0.7, seed=11)
    assert np.array_equal(brain["regions"]["cortex"]["weights"]["w"].detach().numpy(), region["weights"]["w"])


def test_a_model_is_changed_where_its_state_is_its_own():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = state()

        def get_full_state(self):
            return self.parts

        def load_full_state(self, found):
            self.parts = found

    model = Model()
    assert tb.grow_output(model, "cortex", 1).n_neurons == 7
    assert model.parts["regions"]["cortex"]["weights"]["w"].shape == (7, 4)
    assert tb.load_into(model, state(n=5)).tensors_in_corner > 0

    class Odd(torch.Tensor):
        pass

    model.parts["regions"]["cortex"]["weights"]["odd"] = torch.zeros(7, 2).as_subclass(Odd)
    with pytest.raises(thalia.UnsupportedError, match="Odd"):
        tb.grow_output(model, "cortex", 1)
