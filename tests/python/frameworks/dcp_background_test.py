"""Saves of torch.distributed.checkpoint beside a training of two ranks."""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, load, on_ranks, whole
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter, async_save
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


def state_of(mesh, turn):
    return {"w": distribute_tensor(torch.arange(9.0) + turn, mesh, [Shard(0)]), "turn": turn}


def train(rank):
    for _ in range(30):
        total = torch.full((64,), float(rank))
        dist.all_reduce(total)
        assert (total == 1).all()


def saves_while_it_trains(rank, world, folder):
    mesh = init_device_mesh("cpu", (2,))
    groups = len(dist.distributed_c10d._world.pg_map)
    for turn in range(6):
        state = state_of(mesh, turn)
        async_save(state, storage_writer=ThaliaStorageWriter(f"{folder}/run", durability="none"))
        state["w"].to_local().fill_(-1)
        train(rank)  # nobody waits for the save before
    async_save(state_of(mesh, 7), storage_writer=ThaliaStorageWriter(f"{folder}/run")).result()
    assert_same(whole(load(state_of(mesh, -1), f"{folder}/run")), whole(state_of(mesh, 7)))
    assert len(dist.distributed_c10d._world.pg_map) == groups + 1
    saving = async_save(
        state_of(mesh, 8),
        storage_writer=ThaliaStorageWriter(f"{folder}/process", durability="none"),
        async_checkpointer_type=AsyncCheckpointerType.PROCESS,
    )
    train(rank)
    saving.result()
    assert len(dist.distributed_c10d._world.pg_map) == groups + 1
    # One that fails is told by its own future, and stops no other.
    failing = async_save({f"of.{rank}": object() if rank else 1}, storage_writer=ThaliaStorageWriter(f"{folder}/run"))
    async_save(state_of(mesh, 9), storage_writer=ThaliaStorageWriter(f"{folder}/run")).result()
    with pytest.raises(CheckpointException, match=r"of\.1: cannot save"):
        failing.result()
    own = dist.new_group(backend="gloo")
    async_save(state_of(mesh, 9), storage_writer=ThaliaStorageWriter(f"{folder}/own"), process_group=own).result()
    for name, turn in (("run", 9), ("process", 8), ("own", 9)):
        assert_same(whole(load(state_of(mesh, -1), f"{folder}/{name}")), whole(state_of(mesh, turn)))


def test_saves_and_training_do_not_meet(tmp_path):
    on_ranks(2, tmp_path, saves_while_it_trains)


def test_a_process_saves_alone(tmp_path):
    async_save({"w": torch.ones(2)}, storage_writer=ThaliaStorageWriter(tmp_path / "run")).result()
    assert_same(load({"w": torch.zeros(2)}, tmp_path / "run"), {"w": torch.ones(2)})


def the_manual(rank, world, folder, blocks):
    """The manual's examples, as a rank runs them."""
    import os

    import thalia_checkpoint.torch as thalia_torch

    os.chdir(folder)
    mesh = init_device_mesh("cpu", (world,))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    names = {"torch": torch, "thalia_torch": thalia_torch, "model": model, "optimizer": optimizer}
    for block in blocks[:2]:
        exec(block, names)
        train(rank)
    dist.barrier()
    if rank == 0:
        exec(blocks[2], names)
        assert_same(names["state"]["step"], 1000)
        assert names["state"]["model"]["0.weight"].shape == (16, 8)
    assert ThaliaStorageReader.validate_checkpoint_id("run/sharded")


def test_the_examples_of_the_manual_run_with_two_ranks(tmp_path):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from documents_test import blocks_of

    blocks = [block for block in blocks_of("docs/use/python.md") if "thalia_checkpoint.dcp" in block]
    assert len(blocks) == 3 and ["async_save(" in block for block in blocks] == [False, True, False]
    on_ranks(2, tmp_path, the_manual, blocks)
