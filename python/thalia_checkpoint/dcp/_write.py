"""What one rank writes of a distributed checkpoint, and what it reports to the coordinator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from .. import _core
from .._distributed.metadata import StoredFile, StoredValue
from .._files.any_file import OpenOptions
from .._files.file import File
from .._files.open import open_one
from .._files.writer import Writer
from ..errors import UnsupportedError, UsageError, make_error
from ..torch._encode import PLAIN, encode
from ..torch._tensors import named


@dataclass(frozen=True)
class Place:
    """Where a chunk of a tensor is."""

    file: StoredFile
    region: str
    name: str
    dtype: str


class _RankWriter:
    """Declares tensors of one file, each under a name of its own."""

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        # The folder is the save's own: no link is expected in it.
        own: dict[str, Any] = {**options, "follow_link": False}
        self._writer = Writer(path, **own)
        self._path = path
        self._names: set[tuple[str, str]] = set()
        self._stored: dict[Any, tuple[str, str, str]] = {}
        self._kept: list[torch.Tensor] = []

    def tensor(self, item: WriteItem, tensor: torch.Tensor, role: str | None) -> tuple[str, str, str]:
        """Region, name and dtype; those of a tensor that is the same memory, if one was added."""
        full_name = item.index.fqn
        data = item.tensor_data
        if data is None or data.chunk is None or tuple(tensor.shape) != tuple(data.chunk.sizes):
            raise make_error(
                UsageError,
                f"{full_name}: the planner gave a tensor of shape {list(tensor.shape)}, which is not what it planned",
                "shape_mismatch",
                tensor=full_name,
            )
        if type(tensor) not in PLAIN:
            raise make_error(
                UnsupportedError,
                f"{full_name}: cannot save the tensor subclass {type(tensor).__qualname__}; expected torch.Tensor or "
                "DTensors of them",
                "unsupported_feature",
                tensor=full_name,
                value=type(tensor).__qualname__,
            )
        stored = named(full_name, tensor)
        key = (
            tensor.data_ptr(),
            tensor.device,
            tensor.dtype,
            tensor.shape,
            tensor.stride(),
            tensor.is_conj(),
            tensor.is_neg(),
        )
        if tensor.numel() != 0 and key in self._stored:
            return self._stored[key]
        self._kept.append(tensor)  # so that no other comes to lie in its memory
        region = _core.region_for_name(full_name)
        whole = tuple(data.chunk.sizes) == tuple(data.size)
        own = full_name if whole else f"{full_name}@{','.join(map(str, data.chunk.offsets))}"
        name, n = own, 1
        while (region, name) in self._names:
            n += 1
            name = f"{own}#{n}"
        self._names.add((region, name))
        self._writer.add_bytes(name, stored.dtype, stored.shape, stored.data, region=region, role=role)
        if tensor.numel() != 0:
            self._stored[key] = region, name, stored.dtype
        return region, name, stored.dtype

    def values(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The trees of values, and the region that their tensors are in."""
        encoded = encode(dict(values), converts=False)
        region, n = "values", 1
        while any(region == used for used, _ in self._names):
            n += 1
            region = f"values#{n}"
        for tensor in encoded.tensors:
            self._writer.add_bytes(tensor.name, tensor.dtype, tensor.shape, tensor.data, region=region)
            self._names.add((region, tensor.name))
        return dict(encoded.tree["dict"]), region

    def commit(self) -> StoredFile | None:
        """The file; None if there is nothing to write."""
        if not self._names:
            self._writer.abandon()
            return None
        self._writer.commit()
        return stored_file(self._path)


def stored_file(path: str) -> StoredFile:
    """What tells a file from others of its name. Raises as open()."""
    with open_one(path, OpenOptions(verification="off")) as file:
        if not isinstance(file, File):
            raise make_error(UsageError, f"{path}: expected a .thalia file", "wrong_state", path=path)
        return StoredFile(os.path.basename(path), file.file_bytes, str(file.header["file_uuid"]))


def write_items(path: str, plan: SavePlan, planner: SavePlanner, options: Mapping[str, Any]) -> list[WriteResult]:
    """Writes a rank's items to a file, or none if they hold no tensors.

    storage_data of a result is a Place, or a StoredValue. Raises UnsupportedError that names an
    item that no file can hold; UsageError, IoError.
    """
    writer = _RankWriter(path, options)
    optimizers = _optimizer_prefixes(plan)
    found: list[tuple[WriteItem, tuple[str, str, str]]] = []
    values: dict[str, Any] = {}
    for item in plan.items:
        if item.type == WriteItemType.BYTE_IO:
            if item.tensor_data is not None:
                raise compresses_itself(item.index.fqn, "MithrilSavePlanner", "DefaultSavePlanner")
            values[item.index.fqn] = _value(item, planner)
            continue
        tensor = planner.resolve_data(item)
        assert isinstance(tensor, torch.Tensor)
        role = _role(item.index.fqn, tensor.ndim, optimizers)
        found.append((item, writer.tensor(item, tensor, role)))
    trees, region = writer.values(values)
    file = writer.commit()
    results = [WriteResult(MetadataIndex(name), 0, _stored_value(tree, file, region)) for name, tree in trees.items()]
    for item, (where, name, dtype) in found:
        assert file is not None and item.tensor_data is not None
        results.append(WriteResult(item.index, item.tensor_storage_size() or 0, Place(file, where, name, dtype)))
    return results


def compresses_itself(name: str, planner: str, expected: str) -> Exception:
    """UnsupportedError for a tensor that a planner makes bytes of, or expects as such."""
    return make_error(
        UnsupportedError,
        f"{name}: got a tensor as bytes, as {planner} makes it; expected torch's {expected}: .thalia files are "
        "compressed by the storage writer's compression=",
        "unsupported_feature",
        tensor=name,
        value=planner,
        expected=expected,
    )


def _value(item: WriteItem, planner: SavePlanner) -> Any:
    # resolve_data() would pickle it.
    lookup = getattr(planner, "lookup_object", None)
    if lookup is None:
        raise make_error(
            UnsupportedError,
            f"{item.index.fqn}: a value that is no tensor needs a planner with lookup_object(), as DefaultSavePlanner "
            f"has it; got {type(planner).__qualname__}",
            "unsupported_feature",
            field=item.index.fqn,
            value=type(planner).__qualname__,
        )
    return lookup(item.index)


def _stored_value(tree: Any, file: StoredFile | None, region: str) -> StoredValue:
    return StoredValue(tree, file, region) if _has_tensors(tree) else StoredValue(tree, None, "")


def _has_tensors(node: Any) -> bool:
    if isinstance(node, dict):
        return not node.keys().isdisjoint(("tensor", "array", "scalar")) or any(map(_has_tensors, node.values()))
    return isinstance(node, list) and any(map(_has_tensors, node))


def _optimizer_prefixes(plan: SavePlan) -> list[str]:
    """What names of an optimizer's state begin with, of each optimizer of the state."""
    names: Iterable[str] = (item.index.fqn for item in plan.items)
    if isinstance(plan.planner_data, dict):
        names = plan.planner_data
    parts = {name.partition("param_groups")[0] for name in names if "param_groups" in name}
    return [f"{before}state." for before in parts if not before or before.endswith(".")]


def _role(name: str, dimensions: int, optimizers: list[str]) -> str:
    if name.startswith(tuple(optimizers)):
        return "optimizer"
    return _core.role_of_name(name, dimensions)
