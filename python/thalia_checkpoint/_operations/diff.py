"""What differs between two checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import _core
from .._core import ConnectionDiff, Diff, FieldDiff, RegionDiff, TensorDiff, TensorFacts, ValueDiff
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
    """What differs between two files of any formats, as `thalia diff` tells it. Deltas are compared as their states.

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
    return _core.diff(
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
