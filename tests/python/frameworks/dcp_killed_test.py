"""Processes that are killed while they save a distributed checkpoint, and what is there after."""

import os
import signal

import pytest
import thalia_checkpoint as thalia
import torch
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from ranks import emptied, load, meeting_place, on_ranks, save, start, whole
from thalia_checkpoint.dcp import ThaliaStorageWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


class Dying(DefaultSavePlanner):
    """Ends the process when it is asked for the second item to write."""

    def resolve_data(self, item):
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().resolve_data(item)


class Late(ThaliaStorageWriter):
    """Ends the process when all have written, just before the folder takes its place."""

    def finish(self, metadata, results):
        os.kill(os.getpid(), signal.SIGKILL)


def state_of_ones(mesh):
    return {name: distribute_tensor(torch.ones(64), mesh, [Shard(0)]) for name in "abc"}


def assert_ones(path):
    state = load({name: torch.zeros(64) for name in "abc"}, path)
    assert all(torch.equal(tensor, torch.ones(64)) for tensor in state.values())


def die_while_saving(rank, world, folder, dying, late):
    mesh = init_device_mesh("cpu", (2,))
    state = state_of_ones(mesh)
    save(state, f"{folder}/run")
    emptied(state)
    planner = Dying() if rank == dying and not late else DefaultSavePlanner()
    writer = (Late if late else ThaliaStorageWriter)(f"{folder}/run", ranks_per_file=2, durability="none")
    with pytest.raises(RuntimeError):  # its peer is gone
        dcp.save(state, storage_writer=writer, planner=planner)
    os._exit(0)  # without a group to say goodbye to


@pytest.mark.parametrize(("dying", "late"), [(1, False), (0, False), (0, True)])
def test_a_killed_rank_leaves_the_checkpoint_before(tmp_path, dying, late):
    context = multiprocessing.get_context("spawn")
    store = meeting_place()
    arguments = (2, str(tmp_path), store.port, die_while_saving, dying, late)
    ranks = [context.Process(target=start, args=(rank, *arguments)) for rank in range(2)]
    for process in ranks:
        process.start()
    for rank in (dying, 1 - dying):
        ranks[rank].join(120)
    assert ranks[dying].exitcode == -signal.SIGKILL
    assert ranks[1 - dying].exitcode == 0
    assert (tmp_path / ".run.saving").is_dir()
    assert_ones(tmp_path / "run")
    save({"a": torch.zeros(2)}, tmp_path / "other")  # clears away what the killed one left
    assert sorted(os.listdir(tmp_path)) == ["other", "run"]
    assert torch.equal(load({"a": torch.ones(2)}, tmp_path / "other")["a"], torch.zeros(2))


def lose_the_process_that_saves(rank, world, folder):
    fail_in_the_process(rank, f"{folder}/run")
    mesh = init_device_mesh("cpu", (2,))
    state = state_of_ones(mesh)
    save(state, f"{folder}/run")
    emptied(state)
    saved = dcp.async_save(
        state,
        storage_writer=ThaliaStorageWriter(f"{folder}/run", durability="none"),
        planner=Dying() if rank == 1 else DefaultSavePlanner(),
        async_checkpointer_type=AsyncCheckpointerType.PROCESS,
    )
    with pytest.raises(RuntimeError):
        saved.result()
    assert_ones(f"{folder}/run")
    assert os.path.isdir(f"{folder}/.run.saving")
    save(state, f"{folder}/run")
    assert torch.equal(whole(load(state_of_ones(mesh), f"{folder}/run")["b"]), torch.full((64,), 77.0))


def fail_in_the_process(rank, path):
    saved = dcp.async_save(
        {f"of.{rank}": torch.zeros(2, dtype=torch.complex32 if rank else torch.float32)},
        storage_writer=ThaliaStorageWriter(path, durability="none"),
        async_checkpointer_type=AsyncCheckpointerType.PROCESS,
    )
    with pytest.raises(CheckpointException) as caught:
        saved.result()
    assert [type(error) for error, _ in caught.value.failures.values()] == [thalia.UnsupportedError]


def test_a_run_goes_on_without_the_process_that_saved(tmp_path):
    on_ranks(2, tmp_path, lose_the_process_that_saves)
    assert os.listdir(tmp_path) == ["run"]
