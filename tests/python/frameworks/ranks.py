"""What tests with several ranks share: starting them, states of DTensors, saves and loads of them."""

import copy
import os
import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor


def whole(value):
    """The same state with every DTensor as a tensor of all its elements."""
    if isinstance(value, DTensor):
        return value.full_tensor().clone()
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: whole(inner) for key, inner in value.items()}
    return [whole(inner) for inner in value] if isinstance(value, list) else copy.deepcopy(value)


def emptied(value):
    """The same state without what it was: of tensors all elements are changed, in place."""
    if isinstance(value, torch.Tensor):
        local = value.to_local() if isinstance(value, DTensor) else value
        local.detach().fill_(77)
        return value
    if isinstance(value, dict):
        return {key: emptied(inner) for key, inner in value.items()}
    return [emptied(inner) for inner in value] if isinstance(value, list) else None


def assert_same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(a.view(torch.uint8) if a.ndim else a, b.view(torch.uint8) if b.ndim else b)
    else:
        assert a == b


def full_tensors():
    """Tensors whose every element tells where it is, of shapes that no number of ranks divides."""
    return {
        "matrix": torch.arange(31 * 10, dtype=torch.float32).reshape(31, 10),
        "cube": torch.arange(5 * 6 * 7).reshape(5, 6, 7).to(torch.bfloat16),
        "line": torch.arange(3, dtype=torch.int64),
        "float8": torch.arange(16.0).reshape(4, 4).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.zeros(0, 4),
    }


def placed(mesh, how, tensors):
    """DTensors of those that gloo can send; those with one dimension are sharded by it, or not at all."""
    of_lines = how if how == [Shard(0)] else [Replicate()] * mesh.ndim
    return {
        name: distribute_tensor(tensor, mesh, how if tensor.ndim > 1 else of_lines)
        if tensor.ndim and tensor.dtype != torch.float8_e4m3fn
        else tensor.clone()
        for name, tensor in tensors.items()
    }


def start(rank, world, folder, port, function, *args):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # Processes of async_save meet there as well: a port that was free once may be taken by then.
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCAL_RANK=str(rank), DCP_USE_PREFIX_STORE="1")
    store = dist.PrefixStore("ranks", dist.TCPStore("127.0.0.1", port))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    function(rank, world, folder, *args)
    dist.barrier()
    dist.destroy_process_group()
    # gloo's threads may outlive the interpreter, and then abort the process.
    for child in multiprocessing.active_children():
        child.terminate()
    sys.stdout.flush()
    os._exit(0)


def meeting_place():
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def on_ranks(world, folder, function, *args):
    store = meeting_place()
    multiprocessing.spawn(start, (world, str(folder), store.port, function, *args), world)


def save(state, path, **options):
    dcp.save(state, storage_writer=ThaliaStorageWriter(path, durability="none", **options))


def load(state, path, **options):
    dcp.load(state, storage_reader=ThaliaStorageReader(path, **options))
    return state


def load_other_ways(mesh, path):
    full = full_tensors()
    for how in ([Shard(0)], [Shard(1)], [Replicate()]):
        state = emptied(placed(mesh, how, full))
        for verify in (True, False):
            load(state, path, verify=verify, access="mapped" if verify else "copied")
            assert_same(whole(state), full)
