"""Distributed checkpoints in which several ranks share a file."""

import errno
import os
import resource
from itertools import permutations

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed.checkpoint as dcp
from ranks import assert_same, full_tensors, load, load_other_ways, on_ranks, placed, save, whole
from thalia_checkpoint.dcp import ThaliaStorageWriter, _join, consolidate
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


def save_as_four(rank, world, folder):
    mesh = init_device_mesh("cpu", (4,))
    own = {f"own.{rank}": (rank, torch.full((2,), float(rank))), "values": {"x": torch.arange(3)}}
    save({**placed(mesh, [Shard(0)], full_tensors()), **own}, f"{folder}/by-3", ranks_per_file=3)
    load_other_ways(mesh, f"{folder}/by-3")
    for turn in range(2):  # the plans of the second are cached
        planner = DefaultSavePlanner(enable_plan_caching=True)
        writer = ThaliaStorageWriter(f"{folder}/cached", ranks_per_file=2, durability="none")
        dcp.save(sharded(mesh, turn), storage_writer=writer, planner=planner)
        assert_holds(mesh, f"{folder}/cached", turn)
    for kind in AsyncCheckpointerType:
        writer = ThaliaStorageWriter(f"{folder}/{kind.value}", ranks_per_file=9, durability="none", compression="zstd")
        dcp.async_save(sharded(mesh, 5), storage_writer=writer, async_checkpointer_type=kind).result()
        assert_holds(mesh, f"{folder}/{kind.value}", 5)
    with pytest.raises(CheckpointException) as caught:
        failing = {f"of.{rank}": object() if rank == 2 else rank}
        save({**sharded(mesh, 7), **failing}, f"{folder}/cached", ranks_per_file=2)
    assert [type(error) for error, _ in caught.value.failures.values()] == [thalia.UnsupportedError]
    assert_holds(mesh, f"{folder}/cached", 1)
    save(sharded(mesh, 8), f"{folder}/cached", ranks_per_file=2)


def sharded(mesh, first):
    return {"w": distribute_tensor(torch.arange(9.0) + first, mesh, [Shard(0)])}


def assert_holds(mesh, path, first):
    assert_same(whole(load(sharded(mesh, -1), path)), whole(sharded(mesh, first)))


def load_as_three(rank, world, folder):
    mesh = init_device_mesh("cpu", (3,))
    load_other_ways(mesh, f"{folder}/by-3")
    assert_holds(mesh, f"{folder}/cached", 8)


def test_four_ranks_share_files_that_three_and_one_load(tmp_path):
    on_ranks(4, tmp_path, save_as_four)
    assert {path.name: sorted(os.listdir(path)) for path in tmp_path.iterdir()} == {
        "by-3": ["checkpoint.json", "rank-0.thalia", "rank-3.thalia"],
        "cached": ["checkpoint.json", "rank-0.thalia", "rank-2.thalia"],
        "thread": ["checkpoint.json", "rank-0.thalia"],
        "process": ["checkpoint.json", "rank-0.thalia"],
    }
    assert all(thalia.verify(path).ok for path in tmp_path.glob("*/*.thalia"))
    on_ranks(3, tmp_path, load_as_three)
    own = load({f"own.{rank}": None for rank in range(4)}, tmp_path / "by-3")
    assert_same([list(value) for value in own.values()], [[r, torch.full((2,), float(r))] for r in range(4)])
    consolidate(tmp_path / "by-3", tmp_path / "one.thalia")
    one = thalia_torch.load(tmp_path / "one.thalia")
    assert_same({name: one[name] for name in full_tensors()}, full_tensors())


class Save:
    """A save of several ranks whose steps a test takes in an order of its own."""

    def __init__(self, folder, states, **options):
        options = {"durability": "none", "ranks_per_file": len(states), **options}
        self.writers = [ThaliaStorageWriter(folder, **options) for _ in states]
        self.planners = [DefaultSavePlanner() for _ in states]
        plans = []
        for rank, state in enumerate(states):
            self.planners[rank].set_up_planner(state, is_coordinator=rank == 0)
            self.writers[rank].set_up_storage_writer(rank == 0, rank=rank)
            plans.append(self.planners[rank].create_local_plan())
        plans, self.metadata = self.planners[0].create_global_plan(plans)
        self.plans = self.writers[0].prepare_global_plan(plans)
        self.results = [[] for _ in states]

    def write(self, rank):
        plan = self.planners[rank].finish_plan(self.plans[rank])
        self.results[rank] = self.writers[rank].write_data(plan, self.planners[rank]).value()

    def finish(self):
        self.writers[0].finish(self.metadata, self.results)


def test_whichever_rank_is_last_the_file_is_the_same(tmp_path):
    states = [{"a": torch.ones(5)}, {}, {"b.c": torch.arange(3), "n": (torch.zeros(2), 5)}]
    contents = set()
    for order in permutations(range(3)):
        save = Save(tmp_path / "run", states, reproducible=True, timestamp=0)
        for rank in order:
            assert not (tmp_path / ".run.saving" / "rank-0.thalia").exists()
            save.write(rank)
        # A rank that looks late does not join them again.
        assert _join._join(str(tmp_path / ".run.saving"), range(3), {}) == {}
        save.finish()
        assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint.json", "rank-0.thalia"]
        contents.add((tmp_path / "run" / "rank-0.thalia").read_bytes())
        state = load({"a": torch.zeros(5), "b": {"c": torch.zeros(3)}, "n": None}, tmp_path / "run")
        assert torch.equal(state["a"], torch.ones(5)) and torch.equal(state["n"][0], torch.zeros(2))
    assert len(contents) == 1


def test_regions_in_which_a_name_is_taken_get_another_name(tmp_path):
    save = Save(tmp_path / "run", [{"a": (torch.zeros(2), torch.ones(1))}, {"a.0": np.arange(3)}])
    save.write(0)
    save.write(1)
    save.finish()
    with thalia.open(tmp_path / "run" / "rank-0.thalia") as file:
        assert [tensor.path for tensor in file.tensors.values()] == ["values/a.0", "values/a.1", "values#2/a.0"]
    state = load({"a": None, "a.0": None}, tmp_path / "run")
    assert torch.equal(state["a"][0], torch.zeros(2)) and np.array_equal(state["a.0"], np.arange(3))


def test_a_group_with_nothing_to_write_has_no_file(tmp_path):
    states = [{"n": 5}, {}, {"a": torch.ones(1)}, {}]
    save = Save(tmp_path / "run", states, ranks_per_file=2)
    for rank in range(4):
        save.write(rank)
    save.finish()
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint.json", "rank-2.thalia"]
    assert load({"n": 0, "a": torch.zeros(1)}, tmp_path / "run") == {"n": 5, "a": torch.ones(1)}


def test_parts_that_nobody_joined_are_no_checkpoint(tmp_path):
    states = [{"a": torch.ones(5)}, {"b": torch.ones(5)}]
    whole = Save(tmp_path / "run", states)
    whole.write(0)
    whole.write(1)
    whole.finish()
    save = Save(tmp_path / "run", states)
    save.write(0)
    died = save.results[0]
    save.write(1)
    save.results[1] = died  # of a rank whose part another process replaced
    with pytest.raises(thalia.IoError, match=r"\.rank-0\.part: not in the file of its ranks"):
        save.finish()
    assert load({"a": torch.zeros(5)}, tmp_path / "run")["a"].sum() == 5


def test_a_full_disk_while_parts_are_joined_leaves_the_checkpoint_before(tmp_path):
    whole = Save(tmp_path / "run", [{"a": torch.ones(5)}, {"b": torch.ones(5)}])
    whole.write(0)
    whole.write(1)
    whole.finish()
    states = [{"a": torch.zeros(1 << 18)}, {"b": torch.zeros(1 << 18)}]
    save = Save(tmp_path / "run", states)
    save.write(0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 19, limits[1]))  # more than a part, less than both
    try:
        with pytest.raises(thalia.IoError, match=r"rank-0\.thalia") as caught:
            save.write(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert load({"a": torch.zeros(5)}, tmp_path / "run")["a"].sum() == 5
    save = Save(tmp_path / "run", states)
    save.write(0)
    save.write(1)
    save.finish()
    assert os.listdir(tmp_path) == ["run"]


def test_a_file_of_no_ranks_is_refused():
    with pytest.raises(thalia.UsageError, match="ranks_per_file: got 0, expected 1 or more"):
        ThaliaStorageWriter("run", ranks_per_file=0)
