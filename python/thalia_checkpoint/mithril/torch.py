"""Planners of torch.distributed.checkpoint that compress: for torch's own FileSystemWriter and FileSystemReader.

    import torch.distributed.checkpoint as dcp
    from thalia_checkpoint.mithril.torch import MithrilLoadPlanner, MithrilSavePlanner

    dcp.save(state, storage_writer=dcp.FileSystemWriter(path), planner=MithrilSavePlanner(compression_level=3))
    dcp.load(state, storage_reader=dcp.FileSystemReader(path), planner=MithrilLoadPlanner())

Each tensor, or each rank's part of one, is an MCKP file within the files that the writer makes. What is no tensor
is stored as torch does it: it is a pickle, and so is the writer's .metadata. thalia_checkpoint.dcp has a storage
without pickles, and compresses too.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch.distributed._shard._utils import narrow_tensor_by_index
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import BytesStorageMetadata
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    ReadItem,
    SavePlan,
    WriteItem,
    WriteItemType,
)

from .. import _core
from .._core import Stop
from .._keywords import suggests
from .._support import made_as
from ..errors import FormatError, UnsupportedError, UsageError, make_error
from ..torch._encode import PLAIN
from ..torch._tensors import DTYPES, named, stored_as, tensor_from
from ._compressor import Compressor

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["MithrilLoadPlanner", "MithrilSavePlanner"]

_MAGIC = b"MCKP"


class SavePlannerOptions(TypedDict, total=False):
    """Those of torch's DefaultSavePlanner, of which older versions lack the last."""

    flatten_state_dict: bool
    flatten_sharded_tensors: bool
    dedup_replicated_tensors: bool | None
    dedup_save_to_lowest_rank: bool
    enable_plan_caching: bool


# The base is Any to a checker of types that does not see torch.
@suggests
class MithrilSavePlanner(DefaultSavePlanner):  # type: ignore[misc, unused-ignore]
    """Compresses tensors on their way into torch's storage writers. Such a checkpoint takes MithrilLoadPlanner to load;
    to torch's own planner its tensors are no pickles, and it raises.

    compressor: whose compression_level, byte_grouping and threads are taken; its storage is not used. Or these by
        themselves, as Compressor has them.
    options: those of torch's DefaultSavePlanner.

    Raises UsageError for a level that does not exist, for a compressor beside its options, and for one that
    quantizes: dcp keeps no count of how often that was done.
    """

    def __init__(
        self,
        compressor: Compressor | None = None,
        *,
        compression_level: int | None = None,
        byte_grouping: bool = True,
        threads: int = 0,
        **options: Unpack[SavePlannerOptions],
    ) -> None:
        super().__init__(**options)
        if compressor is None:
            compressor = Compressor(compression_level=compression_level, byte_grouping=byte_grouping, threads=threads)
        elif compression_level is not None or not byte_grouping or threads != 0:
            raise _wrong("compressor", "a Compressor and options of one", "either of them")
        elif compressor.config.quantization is not None or compressor.config.low_rank is not None:
            raise _wrong("compressor", "one with quantization= or low_rank=", "one that loses nothing")
        self._config = compressor.config
        self._compressor: _core.Compressor | None = None

    def __repr__(self) -> str:
        config = self._config
        return made_as(self, compression_level=config.compression_level, byte_grouping=config.byte_grouping)

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        # Only now: plans that ranks compare, and the metadata of the checkpoint, are those of tensors.
        plan = super().finish_plan(new_plan)
        self.plan: SavePlan = replace(plan, items=[self._compressed(item) for item in plan.items])
        return self.plan

    def _compressed(self, item: WriteItem) -> WriteItem:
        if item.type == WriteItemType.BYTE_IO:
            return item
        tensor = self.lookup_object(item.index)
        try:
            dtype, _ = stored_as(item.index.fqn, tensor)
        except UnsupportedError:
            return item
        # For others torch has a form.
        takes = type(tensor) in PLAIN and dtype in DTYPES
        return replace(item, type=WriteItemType.BYTE_IO) if takes else item

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        if write_item.type != WriteItemType.BYTE_IO or write_item.tensor_data is None:
            return super().transform_object(write_item, object)
        name = write_item.index.fqn
        if self._compressor is None:
            config = self._config
            self._compressor = Compressor(
                compression_level=config.compression_level,
                byte_grouping=config.byte_grouping,
                threads=config.threads,
            )._core
        prepared = _core.PreparedCheckpoint([tuple(named(name, object))], "{}", None, False)
        return io.BytesIO(self._compressor.compress(prepared, "", Stop())[1])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compressor": None}


@suggests
class MithrilLoadPlanner(DefaultLoadPlanner):  # type: ignore[misc, unused-ignore]
    """Loads checkpoints of MithrilSavePlanner through torch's storage readers, into any sharding; tensors that torch
    stored itself too.

    options: those of torch's DefaultLoadPlanner.

    What a load raises comes in dcp's CheckpointException, by rank: IntegrityError, FormatError for damaged tensors;
    UsageError for a part that does not fit its target.
    """

    def __repr__(self) -> str:
        return made_as(self)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        # A reader opens what it takes for a tensor with torch.load().
        plan = super().finish_plan(new_plan)
        return replace(plan, items=[replace(item, type=LoadItemType.BYTE_IO) for item in plan.items])

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.storage_index.fqn
        if self.metadata is None or isinstance(self.metadata.state_dict_metadata[name], BytesStorageMetadata):
            super().load_bytes(read_item, value)
            return
        stored = narrow_tensor_by_index(_tensor(name, value), read_item.storage_offsets, read_item.lengths)
        target = self.resolve_tensor(read_item).detach()
        if target.size() != stored.size():
            raise make_error(
                UsageError,
                f"{read_item.dest_index.fqn}: got a part of {list(stored.shape)} for a tensor of {list(target.shape)}",
                "shape_mismatch",
                tensor=read_item.dest_index.fqn,
            )
        target.copy_(stored)
        self.commit_tensor(read_item, target)


def _tensor(name: str, value: io.BytesIO) -> torch.Tensor:
    data = value.getbuffer()
    if data[: len(_MAGIC)] != _MAGIC:
        plain = torch.load(value, map_location="cpu", weights_only=True)
        assert isinstance(plain, torch.Tensor)
        return plain
    stored, _, _ = Compressor()._core.decompress(data, Stop())
    if len(stored) != 1:
        text = f"{name}: got {len(stored)} tensors in its place, expected 1"
        raise make_error(FormatError, text, "bad_value", tensor=name, value=str(len(stored)), expected="1")
    _, dtype, shape, elements = stored[0]
    return tensor_from(name, dtype, shape, elements, device=None)


def _wrong(field: str, found: str, expected: str) -> Exception:
    return make_error(
        UsageError,
        f"{field}: got {found}, expected {expected}",
        "bad_argument",
        field=field,
        value=found,
        expected=expected,
    )
