"""Planners that compress, with torch's own storage writers and readers."""

import copy
import os
import pickle
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import thalia_checkpoint as thalia
import torch
import torch.distributed.checkpoint as dcp
from ranks import assert_same, emptied, full_tensors, on_ranks, placed, whole
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from thalia_checkpoint.mithril import Compressor
from thalia_checkpoint.mithril.torch import MithrilLoadPlanner, MithrilSavePlanner
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is", "ignore:TypedStorage", "ignore:.*quantiz.*")


def save(state, path, planner=None, **options):
    dcp.save(state, storage_writer=dcp.FileSystemWriter(path, sync_files=False, **options), planner=planner)


def load(state, path, planner=None):
    dcp.load(state, storage_reader=dcp.FileSystemReader(path), planner=planner or MithrilLoadPlanner())
    return state


def failure(function, *args, **options):
    with pytest.raises(CheckpointException) as caught:
        function(*args, **options)
    ((error, _),) = caught.value.failures.values()
    return error


def stored_bytes(path):
    return sum(file.stat().st_size for file in path.glob("*.distcp"))


def raw(tensor):
    return bytes(tensor.detach().resolve_conj().contiguous().flatten().view(torch.uint8).numpy())


def trained():
    """A model that was initialized, and its optimizer, some steps on."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, dtype=torch.bfloat16) for _ in range(2)))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(4, 256, dtype=torch.bfloat16)).square().mean().backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3, "text": "ä"}


def everything():
    """One of each that torch stores."""
    return {
        **full_tensors(),
        **{
            str(dtype): torch.arange(6).reshape(2, 3).to(dtype)
            for dtype in (torch.float16, torch.float8_e5m2, torch.int8, torch.uint16, torch.bool, torch.complex64)
        },
        "transposed": torch.arange(12.0).reshape(3, 4).t(),
        "view": torch.arange(12.0)[3:7:2],
        "conjugated": torch.tensor([1 + 2j]).conj(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "list": [torch.zeros(1), {"deep": torch.ones(1), "n": 2}],
        "none": None,
        "half": torch.ones(3, dtype=torch.complex32),  # which only torch has a form for
    }


@pytest.mark.parametrize("options", [{}, {"compression_level": 3}, {"compression_level": 1, "byte_grouping": False}])
def test_what_comes_out_is_what_went_in_and_smaller(tmp_path, options):
    state = trained()
    save(state, tmp_path / "theirs")
    save(state, tmp_path / "ours", MithrilSavePlanner(**options))
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "theirs"))
    found = load(emptied(copy.deepcopy(state)), tmp_path / "ours")
    assert_same(found, trained())
    assert stored_bytes(tmp_path / "ours") < 0.95 * stored_bytes(tmp_path / "theirs")


def test_weights_of_bf16_take_two_thirds(tmp_path):
    torch.manual_seed(0)
    state = {"w": (torch.randn(1 << 20) * 0.02).to(torch.bfloat16)}
    save(state, tmp_path / "ours", MithrilSavePlanner())
    assert stored_bytes(tmp_path / "ours") < 0.68 * state["w"].nbytes


def test_all_that_torch_stores_comes_back(tmp_path):
    state = everything()
    save(state, tmp_path, MithrilSavePlanner())
    found = load(emptied(everything()), tmp_path)
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype and found[name].shape == value.shape
            assert raw(found[name]) == raw(value), name
        else:
            assert_same(found[name], value)
    # Of other devices, dtypes and memory, as torch copies into what there is.
    wide = {"matrix": torch.zeros(31, 10, dtype=torch.float64)}
    assert torch.equal(load(wide, tmp_path)["matrix"], full_tensors()["matrix"].double())


def test_checkpoints_that_torch_wrote_itself_load_and_ours_raise_in_its_planner(tmp_path):
    state = trained()
    save(state, tmp_path / "theirs")
    assert_same(load(emptied(copy.deepcopy(state)), tmp_path / "theirs"), state)
    save(state, tmp_path / "ours", MithrilSavePlanner())
    target = copy.deepcopy(state)
    failure(load, target, tmp_path / "ours", dcp.DefaultLoadPlanner())


@pytest.mark.parametrize("options", [{"single_file_per_rank": False}, {"thread_count": 3}])
def test_writers_of_any_kind(tmp_path, options):
    state = trained()
    save(state, tmp_path, MithrilSavePlanner(), **options)
    assert_same(load(emptied(copy.deepcopy(state)), tmp_path), state)


def test_the_metadata_are_those_of_tensors(tmp_path):
    state = trained()
    save(state, tmp_path / "theirs")
    save(state, tmp_path / "ours", MithrilSavePlanner())
    ours, theirs = (dcp.FileSystemReader(tmp_path / name).read_metadata() for name in ("ours", "theirs"))
    assert ours.state_dict_metadata == theirs.state_dict_metadata and ours.planner_data == theirs.planner_data
    assert b"thalia" not in (tmp_path / "ours" / ".metadata").read_bytes()


def test_plans_that_are_cached_are_compressed_each_time(tmp_path):
    for step in range(3):
        state = {"w": torch.full((100, 100), float(step)), "step": step}
        save(state, tmp_path / str(step), MithrilSavePlanner(enable_plan_caching=True))
        assert stored_bytes(tmp_path / str(step)) < 4000
        found = load({"w": torch.zeros(100, 100), "step": None}, tmp_path / str(step))
        assert_same(found, state)


def test_a_compressor_gives_its_options(tmp_path):
    state = {"w": torch.randn(300, 300)}
    sizes = []
    for i, planner in enumerate(
        (
            MithrilSavePlanner(Compressor(compression_level=3, byte_grouping=False)),
            MithrilSavePlanner(compression_level=3, byte_grouping=False),
            MithrilSavePlanner(Compressor(tmp_path / "unused")),
        )
    ):
        save(state, tmp_path / str(i), planner)
        sizes.append(stored_bytes(tmp_path / str(i)))
    assert sizes[0] == sizes[1] > sizes[2]
    assert not (tmp_path / "unused").exists()


def test_options_are_checked_where_they_are_given(tmp_path):
    with pytest.raises(thalia.UsageError, match="level"):
        MithrilSavePlanner(compression_level=23)
    with pytest.raises(thalia.UsageError, match="either"):
        MithrilSavePlanner(Compressor(), compression_level=3)
    with pytest.raises(thalia.UsageError, match="quantization"):
        MithrilSavePlanner(Compressor(quantization=8))
    with pytest.raises(TypeError, match="compression_level"):
        MithrilSavePlanner(compresion_level=3)
    with pytest.raises(TypeError):
        MithrilLoadPlanner(compression_level=3)


def test_damage_is_found(tmp_path):
    state = {"w": torch.randn(100, 100)}
    save(state, tmp_path, MithrilSavePlanner())
    (path,) = tmp_path.glob("*.distcp")
    data = path.read_bytes()
    for place in range(0, len(data), len(data) // 23):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        error = failure(load, {"w": torch.zeros(100, 100)}, tmp_path)
        # Without its magic it is taken for what torch stores.
        assert isinstance(error, thalia.ThaliaError | pickle.UnpicklingError), (place, error)


def test_other_shapes_are_refused(tmp_path):
    save({"w": torch.ones(4, 4)}, tmp_path, MithrilSavePlanner())
    assert "size mismatch" in str(failure(load, {"w": torch.zeros(4, 5)}, tmp_path)).lower()


def test_thalias_own_storage_compresses_itself(tmp_path):
    state = {"w": torch.ones(4, 4), "step": 3}
    error = failure(dcp.save, state, storage_writer=ThaliaStorageWriter(tmp_path / "a"), planner=MithrilSavePlanner())
    assert isinstance(error, thalia.UnsupportedError) and "compression=" in str(error)
    dcp.save(state, storage_writer=ThaliaStorageWriter(tmp_path / "a"))
    reader = ThaliaStorageReader(tmp_path / "a")
    error = failure(dcp.load, state, storage_reader=reader, planner=MithrilLoadPlanner())
    assert isinstance(error, thalia.UnsupportedError) and "DefaultLoadPlanner" in str(error)


def test_planners_can_be_pickled(tmp_path):
    planner = MithrilSavePlanner(compression_level=2)
    save({"w": torch.ones(4)}, tmp_path / "a", planner)
    save({"w": torch.ones(4)}, tmp_path / "b", pickle.loads(pickle.dumps(planner)))
    assert stored_bytes(tmp_path / "a") == stored_bytes(tmp_path / "b")


def save_and_load_sharded(rank, world, folder, hows):
    mesh = init_device_mesh("cpu", (world,))
    full = full_tensors()
    for i, how in enumerate(hows):
        path = os.path.join(folder, str(i))
        save({"step": i, **placed(mesh, how, full)}, path, MithrilSavePlanner(compression_level=3))
        for other in hows:
            state = {"step": None, **emptied(placed(mesh, other, full))}
            load(state, path)
            assert state.pop("step") == i
            assert_same(whole(state), full)
    handle = dcp.async_save(
        placed(mesh, [Shard(0)], full),
        storage_writer=dcp.FileSystemWriter(os.path.join(folder, "async"), sync_files=False),
        planner=MithrilSavePlanner(),
    )
    handle.result()
    state = emptied(placed(mesh, [Shard(1)], full))
    assert_same(whole(load(state, os.path.join(folder, "async"))), full)


def test_ranks_save_and_load_in_any_sharding(tmp_path):
    on_ranks(2, tmp_path, save_and_load_sharded, [[Shard(0)], [Shard(1)], [Replicate()]])
    # And one process without them.
    for i in range(3):
        state = emptied(full_tensors())
        assert_same(load(state, tmp_path / str(i)), full_tensors())
