"""PyTorch's tests of torch.distributed.checkpoint: its FileSystemWriter and FileSystemReader are ours.

So is the storage that dcp.save() and dcp.load() pick for a checkpoint_id. Tests that want GPUs run on
the processor, with gloo, as far as moving to a GPU is all that they need one for. Ranks are forked:
started anew they would import torch's own storage. They need expecttest.
"""

import functools
import inspect
import multiprocessing
import os

import torch
import torch.distributed.checkpoint as dcp
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from torch.distributed.checkpoint import (
    _fsspec_filesystem,  # noqa: F401 - it derives its own from torch's: before these are swapped
    _storage_utils,
    filesystem,
    format_utils,
)
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.testing._internal import common_distributed
from torch.testing._internal.distributed._shard import sharded_tensor
from torch.testing._internal.distributed._tensor import common_dtensor

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)  # pools of threads do not outlive a fork
_swapped = multiprocessing.Value("i", 0)


def _count():
    with _swapped.get_lock():
        _swapped.value += 1


class Writer(ThaliaStorageWriter):
    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, **options):
        durability = "full" if sync_files else "none"
        replace = options.pop("overwrite", True)
        options.pop("cache_staged_state_dict", None)  # the stager that dcp takes instead has nothing like it
        super().__init__(
            path, replace=replace, durability=durability, threads=thread_count, torch_metadata=True, **options
        )

    def finish(self, metadata, results):
        _count()
        super().finish(metadata, results)


class Reader(ThaliaStorageReader):
    def read_data(self, plan, planner):
        _count()
        return super().read_data(plan, planner)


for module in (dcp, filesystem, _storage_utils, format_utils):
    module.FileSystemWriter, module.FileSystemReader = Writer, Reader


def _skip_if_lt_x_gpu(count, **options):
    # What moves to a GPU and asks nothing else of one runs without.
    return lambda test: test


def _with_gloo(init_pg):
    names = list(inspect.signature(init_pg).parameters)

    @functools.wraps(init_pg)
    def init(self, *arguments, **options):
        bound = dict(zip(names[1:], arguments, strict=False)) | options
        return init_pg(self, **(bound | {"backend": "gloo"}))

    return init


for module in (common_distributed, common_dtensor):
    module.skip_if_lt_x_gpu = _skip_if_lt_x_gpu
common_distributed.requires_nccl = lambda: lambda test: test
common_distributed.MultiProcessTestCase._spawn_processes = common_distributed.MultiProcessTestCase._fork_processes = (
    lambda self: self._start_processes(multiprocessing.get_context("fork").Process)
)
for base in (common_dtensor.DTensorTestBase, sharded_tensor.ShardedTensorTestBase):
    base.init_pg = _with_gloo(base.init_pg)


def _on_the_processor(call):
    @functools.wraps(call)
    def made(*arguments, **options):
        if not str(options.get("device", "cpu")).startswith("meta"):
            options["device"] = torch.device("cpu")
        return call(*arguments, **options)

    return made


torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
for name in ("arange", "ones", "rand", "randn", "zeros"):
    setattr(torch, name, _on_the_processor(getattr(torch, name)))
_fsdp_init = FullyShardedDataParallel.__init__
FullyShardedDataParallel.__init__ = functools.wraps(_fsdp_init)(
    lambda self, *arguments, **options: _fsdp_init(self, *arguments, **({"device_id": torch.device("cpu")} | options))
)


def pytest_sessionfinish(exitstatus):
    if exitstatus in (0, 1):  # the tests ran
        assert _swapped.value > 40, f"only {_swapped.value} saves and loads went through this package"
