"""What differs between two checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._keywords import suggests
from .._progress import callback
from .._support import paths, texts

if TYPE_CHECKING:
    from .._progress import Progress
    from .._types import Access, Path

__all__ = [
    "ConnectionDiff",
    "Diff",
    "FieldDiff",
    "RegionDiff",
    "TensorDiff",
    "TensorFacts",
    "ValueDiff",
    "diff",
]

Change = Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class FieldDiff:
    """A number, a text or a member of a JSON object that differs."""

    field: str
    """The key; for a member of a member, the keys with dots between them: "training.step"."""
    change: Change
    before: Any
    """As the JSON text says; None where it was added."""
    after: Any
    """The same; None where it was removed."""


@dataclass(frozen=True)
class TensorFacts:
    """What a file says of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    role: str | None
    encoding: str
    """"dense", "csr", "coo", …"""
    nnz: int | None
    """Stored elements of csr and coo; None of other encodings."""
    wide_indices: bool
    """Indices of csr and coo are of 64 bits."""
    logical_bytes: int
    restored: bool
    """The file has codes, and these facts describe the elements restored from them."""


@dataclass(frozen=True)
class ValueDiff:
    """How the elements of two tensors differ.

    Complex numbers differ by a magnitude, sparse tensors have zeros where they store nothing, and
    quantized ones are restored. NaN is the same as a NaN of the same bits, and -0 is 0.
    """

    skipped: str
    """Why nothing was compared; empty where it was."""
    compared: tuple[int, ...]
    """The shape, or where shapes differ their common corner."""
    elements: int
    """Of that."""
    differing: int
    """Of which, by more than the tolerance."""
    not_finite: int
    """Of these, with a difference that is no finite number."""
    max_difference: float
    """The largest one of the others, absolute."""
    rms_difference: float
    """The root of the mean square over all elements but the not finite."""
    relative_difference: float | None
    """The norm of the difference over that of the tensor before; None where that is 0."""
    cosine: float | None
    """The cosine of the angle between both as vectors; None where one is all zeros."""


@dataclass(frozen=True)
class TensorDiff:
    """A tensor that one file has, or that is not the same in both."""

    name: str
    """A connection's matrix: "weights" or "delays"."""
    change: Change
    differing: tuple[Literal["dtype", "shape", "role", "encoding", "content"], ...]
    """In what a changed one differs."""
    before: TensorFacts | None
    after: TensorFacts | None
    values: ValueDiff | None
    """Of changed tensors, where values or a tolerance were asked for."""


@dataclass(frozen=True)
class RegionDiff:
    """A region that one file has, or that is not the same in both."""

    name: str
    change: Change
    facts: tuple[FieldDiff, ...]
    config: tuple[FieldDiff, ...]
    metadata: tuple[FieldDiff, ...]
    tensors: tuple[TensorDiff, ...]
    """By name."""
    tensor_count: int
    """That one side or both have."""
    logical_bytes: int
    """From the side that has it, or from the later one."""


@dataclass(frozen=True)
class ConnectionDiff:
    """A connection that one file has, or that is not the same in both."""

    source: str
    target: str
    change: Change
    matrices: tuple[TensorDiff, ...]


@dataclass(frozen=True)
class Diff:
    """What differs between two checkpoints. Truthy if anything differs."""

    header: tuple[FieldDiff, ...]
    storage: tuple[FieldDiff, ...]
    """What two saves of one state differ in, such as the timestamp: no difference by itself."""
    metadata: tuple[FieldDiff, ...]
    regions: tuple[RegionDiff, ...]
    """In the order of the earlier file, then those added."""
    connections: tuple[ConnectionDiff, ...]
    tensors: tuple[TensorDiff, ...]
    """Where one file has another format: tensors by their names, and nothing of regions."""
    same_regions: int
    same_connections: int
    same_tensors: int
    """That `tensors` might have had."""
    metadata_compared: bool
    """False with patterns, and for two formats, which lay metadata out in different ways."""
    ambiguous_tensors: int
    """That several names of the other file may belong to: paired with none of them."""

    @property
    def same(self) -> bool:
        """Nothing differs but the storage."""
        return not (self.header or self.metadata or self.regions or self.connections or self.tensors)

    def __bool__(self) -> bool:
        return not self.same


@suggests
def diff(
    before: Path,
    after: Path,
    *,
    values: bool = False,
    tensors: Iterable[str] = (),
    atol: float = 0.0,
    rtol: float = 0.0,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    legacy: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
) -> Diff:
    """What differs between two files of any formats, as `thalia diff` tells it. Of deltas, their states.

    Two .thalia files: without `values` and tolerances no payload is read, as contents are compared
    by their hashes. Where one has another format, tensors are paired by their names with or without
    the region, and their elements are compared; the result has them in `tensors`.

    values: compare the elements of changed tensors too, which reads them.
    tensors: patterns of the tensors to compare, and nothing else: "*" stands for any characters,
        "?" for one; a region's name for all of the region.
    atol, rtol: elements that differ by at most atol + rtol * abs(element before) are no difference;
        where one is not 0, another type or encoding is no difference either.
    search: folders in which bases are looked for that are not where their delta says.
    legacy: take files that the programs of their formats no longer do.
    threads: 0 for one a core.
    progress: called with bytes of elements that are compared and in all, of both sides, from a
        thread of the work; what it raises ends that.
    Raises NotFoundError for a pattern that fits no tensor of either; UsageError for a tolerance that
    is no finite number from 0 on; IoError where a file or a base is missing; FormatError,
    IntegrityError.
    """
    found = _core.diff(
        before,
        after,
        values,
        texts(tensors),
        atol,
        rtol,
        access,
        paths(search),
        legacy,
        threads,
        callback(progress, f"comparing {os.fspath(before)}"),
    )
    return Diff(
        header=_fields(found["header"]),
        storage=_fields(found["storage"]),
        metadata=_fields(found["metadata"]),
        regions=tuple(_region(region) for region in found["regions"]),
        connections=tuple(
            ConnectionDiff(**{**connection, "matrices": _tensors(connection["matrices"])})
            for connection in found["connections"]
        ),
        same_regions=found["same_regions"],
        tensors=_tensors(found["tensors"]),
        same_connections=found["same_connections"],
        same_tensors=found["same_tensors"],
        metadata_compared=found["metadata_compared"],
        ambiguous_tensors=found["ambiguous_tensors"],
    )


def _fields(fields: list[dict[str, Any]]) -> tuple[FieldDiff, ...]:
    return tuple(
        FieldDiff(
            field=field["field"],
            change=field["change"],
            before=json.loads(field["before"] or "null"),
            after=json.loads(field["after"] or "null"),
        )
        for field in fields
    )


def _region(region: dict[str, Any]) -> RegionDiff:
    for texts_of in ("facts", "config", "metadata"):
        region[texts_of] = _fields(region[texts_of])
    region["tensors"] = _tensors(region["tensors"])
    return RegionDiff(**region)


def _tensors(tensors: list[dict[str, Any]]) -> tuple[TensorDiff, ...]:
    for tensor in tensors:
        tensor["differing"] = tuple(tensor["differing"])
        for side in ("before", "after"):
            if tensor[side] is not None:
                tensor[side] = TensorFacts(**tensor[side])
        if tensor["values"] is not None:
            tensor["values"] = ValueDiff(**tensor["values"])
    return tuple(TensorDiff(**tensor) for tensor in tensors)
