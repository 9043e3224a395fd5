"""Saves of torch.distributed.checkpoint while several ranks train."""

from __future__ import annotations

import weakref
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypedDict

import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.storage import StorageWriter

from .._keywords import suggests
from .._types import Path

if TYPE_CHECKING:
    from typing import Unpack

    from torch.distributed.checkpoint.planner import SavePlanner

#: The process group of all ranks. torch keeps it until destroy_process_group().
_group: weakref.ref[Any] | None = None
_running: list[Future[Any]] = []


class AsyncOptions(TypedDict, total=False):
    """Those of dcp.async_save(), of which older versions of torch lack some."""

    checkpoint_id: Path | None
    planner: SavePlanner | None
    async_checkpointer_type: Any
    async_stager: Any
    no_dist: bool
    use_collectives: bool


@suggests
def async_save(
    state_dict: dict[str, Any],
    *,
    storage_writer: StorageWriter,
    process_group: dist.ProcessGroup | None = None,
    **options: Unpack[AsyncOptions],
) -> Any:
    """dcp.async_save(), in which the ranks talk to each other past the training. All ranks call it, each
    time, as they do dcp.save().

    dcp.async_save() talks from another thread, in the process group that it is given. If that is the
    group of the training, messages of the two are mistaken for each other, and the ranks hang or die.

    process_group: by itself one of Gloo's for all ranks, made in the first call, and used for nothing
        else. Without torch.distributed there is none, and one process saves alone.
    options: those of dcp.async_save().

    Waits until the save before it has ended, and returns what dcp.async_save() does; as it, raises what
    staging raises.
    """
    wait(_running)  # in one group, two saves would be mistaken for each other as well
    _running.clear()
    of_thread = options.get("async_checkpointer_type") is not state_dict_saver.AsyncCheckpointerType.PROCESS
    if process_group is None and of_thread and not options.get("no_dist") and dist.is_initialized():
        process_group = _own_group()
    saving: Any = state_dict_saver.async_save(
        state_dict, storage_writer=storage_writer, process_group=process_group, **options
    )
    _running.append(getattr(saving, "upload_completion", saving))
    return saving


def _own_group() -> Any:
    global _group
    group: Any = None if _group is None else _group()
    try:
        if group is not None:
            dist.get_process_group_ranks(group)
            return group
    except KeyError:
        pass  # processes parted and met again, and torch has forgotten it
    group = dist.new_group(backend="gloo")
    _group = weakref.ref(group)
    return group
