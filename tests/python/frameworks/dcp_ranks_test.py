"""Checkpoints of torch.distributed.checkpoint by several ranks, loaded by others."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
import torch.distributed.checkpoint as dcp
from ranks import (
    assert_same,
    emptied,
    full_tensors,
    load,
    load_other_ways,
    on_ranks,
    placed,
    save,
    whole,
)
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

WIDTH, WORDS = 24, 31  # no multiples of four ranks


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, dropout=0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, WORDS)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens):
        self.seen += 1
        return self.head(self.encoder(self.embed(tokens)))


def trained(mesh, steps=2):
    """A model and its optimizer, sharded over the mesh; with None on one process."""
    torch.manual_seed(3)
    model = Transformer()
    if mesh is not None:
        for layer in model.encoder.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        train(model, optimizer, step)
    return model, optimizer


def train(model, optimizer, step):
    tokens = torch.randint(WORDS, (4, 8), generator=torch.Generator().manual_seed(step))
    loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def state_of(model, optimizer):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state, "step": 2, "note": ["text", None, 0.1]}


def save_as_four(rank, world, folder):
    mesh = init_device_mesh("cpu", (4,))
    model, optimizer = trained(mesh)
    state = state_of(model, optimizer)
    save(state, f"{folder}/run")
    expected = whole(state)
    if rank == 0:
        torch.save(expected, f"{folder}/expected.pt")
    emptied_state = emptied(state)
    assert_same(whole(load(emptied_state, f"{folder}/run")), expected)

    save(placed(mesh, [Shard(0)], full_tensors()), f"{folder}/rows")
    save(placed(mesh, [Shard(1)], full_tensors()), f"{folder}/columns", compression="zstd")
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    replicas_of_shards = state_of(*trained(grid))
    save(replicas_of_shards, f"{folder}/hybrid")
    expected = whole(replicas_of_shards)
    assert_same(whole(load(emptied(replicas_of_shards), f"{folder}/hybrid")), expected)
    save(placed(grid, [Shard(0), Shard(1)], full_tensors()), f"{folder}/grid")
    save(placed(grid, [Replicate(), Shard(1)], full_tensors()), f"{folder}/half")
    save(placed(mesh, [Replicate()], full_tensors()), f"{folder}/replicas")
    writer = ThaliaStorageWriter(f"{folder}/lowest", durability="none")
    planner = DefaultSavePlanner(dedup_save_to_lowest_rank=True)
    dcp.save(placed(mesh, [Replicate()], full_tensors()), storage_writer=writer, planner=planner)
    for name in ("rows", "columns", "grid", "half", "replicas", "lowest"):
        load_other_ways(mesh, f"{folder}/{name}")
    plans_are_cached(mesh, folder)
    saves_in_background(rank, mesh, folder)
    a_rank_that_fails(rank, mesh, folder)
    a_rank_whose_disk_is_full(rank, mesh, folder)


def plans_are_cached(mesh, folder):
    for turn in range(3):
        state = {"w": distribute_tensor(torch.full((9, 2), float(turn)), mesh, [Shard(0)]), "turn": turn}
        writer = ThaliaStorageWriter(durability="none")
        planner = DefaultSavePlanner(enable_plan_caching=True)
        dcp.save(state, checkpoint_id=f"{folder}/cached-{turn % 2}", storage_writer=writer, planner=planner)
    for turn in (1, 2):
        state = {"w": distribute_tensor(torch.zeros(9, 2), mesh, [Shard(0)]), "turn": -1}
        dcp.load(state, checkpoint_id=f"{folder}/cached-{turn % 2}", storage_reader=ThaliaStorageReader())
        assert state["turn"] == turn and torch.equal(whole(state["w"]), torch.full((9, 2), float(turn)))


def saves_in_background(rank, mesh, folder):
    for kind in AsyncCheckpointerType:
        for turn in range(2):  # the second in place of the first
            state = {"w": distribute_tensor(torch.arange(9.0) + turn, mesh, [Shard(0)]), "turn": turn}
            saved = dcp.async_save(
                state,
                storage_writer=ThaliaStorageWriter(f"{folder}/{kind.value}", durability="none"),
                async_checkpointer_type=kind,
            )
            state["w"].to_local().fill_(-1)
            saved.result()
        state = {"w": distribute_tensor(torch.zeros(9), mesh, [Shard(0)]), "turn": -1}
        load(state, f"{folder}/{kind.value}")
        assert state["turn"] == 1 and torch.equal(whole(state["w"]), torch.arange(9.0) + 1)


def a_rank_that_fails(rank, mesh, folder):
    path = f"{folder}/failing"
    save({"w": distribute_tensor(torch.ones(8), mesh, [Shard(0)])}, path)
    bad = {"w": distribute_tensor(torch.zeros(8), mesh, [Shard(0)]), f"of.{rank}": object() if rank == 2 else rank}
    with pytest.raises(CheckpointException) as caught:
        save(bad, path)
    (error,) = (error for error, _ in caught.value.failures.values())
    assert isinstance(error, thalia.UnsupportedError) and "of.2: cannot save builtins.object" in str(error)
    state = {"w": distribute_tensor(torch.zeros(8), mesh, [Shard(0)])}
    assert torch.equal(whole(load(state, path)["w"]), torch.ones(8))
    save({"w": distribute_tensor(torch.full((8,), 2.0), mesh, [Shard(0)])}, path)
    assert torch.equal(whole(load(state, path)["w"]), torch.full((8,), 2.0))


def a_rank_whose_disk_is_full(rank, mesh, folder):
    path = f"{folder}/failing"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096 if rank == 3 else limits[0], limits[1]))
    with pytest.raises(CheckpointException) as caught:
        save({"w": distribute_tensor(torch.zeros(1 << 16), mesh, [Shard(0)])}, path)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    ((failed, (error, _)),) = caught.value.failures.items()
    assert failed == 3 and isinstance(error, thalia.IoError) and error.errno == errno.EFBIG
    state = {"w": distribute_tensor(torch.zeros(8), mesh, [Shard(0)])}
    assert torch.equal(whole(load(state, path)["w"]), torch.full((8,), 2.0))
    save(state, path)


def resume_as_two(rank, world, folder, moved):
    mesh = init_device_mesh("cpu", (2,))
    expected = torch.load(f"{folder}/expected.pt", weights_only=True)
    model, optimizer = trained(mesh, steps=1)
    state = load(emptied(state_of(model, optimizer)), moved)
    assert_same(whole(state), expected)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert_same(whole(state_of(model, optimizer)), expected)
    for name in ("rows", "columns", "grid", "half", "replicas"):
        load_other_ways(mesh, f"{folder}/{name}")
    save(state, f"{folder}/run")  # in place of four files


def save_without_collectives(rank, world, folder):
    state, options = {"rank": rank}, {"use_collectives": False}
    for no_dist in (False, True):
        writer = ThaliaStorageWriter(f"{folder}/run", durability="none")
        with pytest.raises(thalia.UnsupportedError, match="no_dist=True without it"):
            dcp.save(state, storage_writer=writer, no_dist=no_dist, **options)
    own = f"{folder}/{rank}"
    dcp.save(state, storage_writer=ThaliaStorageWriter(own, durability="none"), no_dist=True)
    dcp.load(state := {"rank": None}, storage_reader=ThaliaStorageReader(own), no_dist=True)
    assert state == {"rank": rank}


def test_ranks_that_do_not_talk_save_each_by_itself_or_not_at_all(tmp_path):
    on_ranks(2, tmp_path, save_without_collectives)
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_four_ranks_then_two_then_one(tmp_path):
    on_ranks(4, tmp_path, save_as_four)
    leftovers = [path.name for path in tmp_path.iterdir() if path.name.endswith((".saving", ".old"))]
    assert leftovers == []
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint.json", *(f"rank-{i}.thalia" for i in range(4))]
    assert all(thalia.verify(path).ok for path in tmp_path.glob("*/*.thalia"))
    # What all ranks have is there once, and the ranks share it out.
    stored = sum(t.nbytes for path in (tmp_path / "replicas").glob("*.thalia") for t in tensors_of(path))
    assert stored == sum(tensor.nbytes for tensor in full_tensors().values())
    assert len(list((tmp_path / "replicas").glob("*.thalia"))) > 1
    assert sorted(os.listdir(tmp_path / "lowest")) == ["checkpoint.json", "rank-0.thalia"]
    with thalia.open(tmp_path / "run/rank-1.thalia") as file:
        roles = {tensor.name.split(".")[0]: tensor.role for tensor in file.tensors.values()}
        assert roles["optimizer"] == "optimizer" and roles["model"] != "optimizer"
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere" / "moved")
    on_ranks(2, tmp_path, resume_as_two, str(moved))
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint.json", "rank-0.thalia", "rank-1.thalia"]

    expected = torch.load(tmp_path / "expected.pt", weights_only=True)
    for path in (moved, tmp_path / "run"):
        model, optimizer = trained(None, steps=1)
        state = load(emptied(state_of(model, optimizer)), path)
        assert_same(state, expected)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        assert_same(state_of(model, optimizer), expected)


def tensors_of(path):
    with thalia.open(path) as file:
        return list(file.tensors.values())


EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "python" / "distributed.py"


def run_example(folder, *launcher, dies_at=None):
    """The lines that it prints."""
    command = [sys.executable, "-W", "ignore", *launcher, str(EXAMPLE), str(folder)]
    command += [] if dies_at is None else [str(dies_at)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    assert run.returncode == (0 if dies_at is None else -signal.SIGKILL)
    return run.stdout.splitlines()


def test_the_example_goes_on_bit_for_bit(tmp_path):
    expected = run_example(tmp_path / "whole")
    assert len(expected) == 20
    assert run_example(tmp_path / "died", dies_at=12) == expected[:13]
    shutil.copytree(tmp_path / "died", tmp_path / "other")
    resumed = run_example(tmp_path / "died")
    assert resumed == expected[10:]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    assert len(run_example(tmp_path / "other", *launcher)) == 10
    files = ["checkpoint.json", "rank-0.thalia", "rank-1.thalia"]
    assert sorted(os.listdir(tmp_path / "other" / "checkpoint")) == files
