"""Keyword arguments that calls of this package hand on to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from .._files.writer import FileOptions, PlainOptions
from .._progress import Progress
from .._types import Path, ReadOptions
from ._arrays import Framework
from ._policy import PrecisionPolicy


class BrainOptions(TypedDict, total=False):
    """Those of BrainCheckpoint.save() that say how a brain is stored."""

    compression: str | bool | None
    compression_level: int | None
    precision_policy: str | PrecisionPolicy | None
    include_homeostatic: bool
    sparse: bool


class RunOptions(BrainOptions, FileOptions, total=False):
    """Those of BrainCheckpoint.save() for a checkpoint of a run."""

    metadata: Mapping[str, Any] | None


class StageOptions(BrainOptions, PlainOptions, total=False):
    """Those of BrainCheckpoint.save() and save_delta() that are alike for all checkpoints of a curriculum."""

    threshold: float
    """Like `pack` and `search`, an argument of save_delta() alone."""
    pack: bool
    search: Iterable[Path]


class LoadOptions(ReadOptions, total=False):
    """Those of BrainCheckpoint.load() that leave it the whole state, in memory."""

    device: Any
    framework: Framework | None
    classes: Iterable[type]
    max_bytes: int
    search: Iterable[Path]
    resolve_deltas: bool
    regions: Iterable[str] | None
    lazy: bool


class WrapOptions(TypedDict, total=False):
    """Those of compress() but for the compression itself."""

    frame_bytes: int
    durability: Literal["full", "data", "none"] | None
    replace: bool
    threads: int
    progress: Progress | None
