"""What a run says of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from .. import _core
from .._core import (
    CheckpointEntry,
    GateEntry,
    LoadAttempt,
    PromoteResult,
    PruneResult,
    RestoreResult,
    RetentionDecision,
    RunSummary,
    StoredCheckpoint,
    StoreFinding,
    StoreReport,
)
from .._files.file import File
from .._html import Shown
from .._warn import warn_caller

Entries = list[CheckpointEntry]  # in the class that has a method of that name


__all__ = [
    "CheckpointEntry",
    "Entries",
    "GateEntry",
    "LoadAttempt",
    "LoadedBytes",
    "LoadedCheckpoint",
    "PromoteResult",
    "PruneResult",
    "RestoreResult",
    "RetentionDecision",
    "RunSummary",
    "StoreFinding",
    "StoreReport",
    "StoredCheckpoint",
    "loaded_bytes_of",
    "loaded_of",
    "warn_all",
]


@dataclass(frozen=True)
class LoadedCheckpoint(Shown):
    """A checkpoint that was found whole."""

    entry: CheckpointEntry
    path: FilePath
    file: File
    """Open, and checked."""
    passed_over: tuple[tuple[FilePath, str], ...]
    """Those that were tried before it, and why they could not be loaded."""


@dataclass(frozen=True)
class LoadedBytes(Shown):
    """The bytes of a checkpoint that was found whole."""

    entry: CheckpointEntry
    path: FilePath
    data: memoryview
    """The file, mapped and read-only: it stays as it is when the run removes the checkpoint."""
    passed_over: tuple[tuple[FilePath, str], ...]
    """Those that were tried before it, and why they could not be loaded."""


def warn_all(sentences: Iterable[str]) -> None:
    """A UserWarning for each, at the line that called this package."""
    for sentence in sentences:
        warn_caller(sentence)


def loaded_of(
    facts: tuple[CheckpointEntry, FilePath, _core.File, Sequence[tuple[FilePath, str]], Sequence[str]],
) -> LoadedCheckpoint:
    """The checkpoint that the core reports. The warnings that came with it are issued."""
    entry, path, file, passed_over, sentences = facts
    warn_all(sentences)
    return LoadedCheckpoint(entry, path, File(file), tuple(passed_over))


def loaded_bytes_of(
    facts: tuple[CheckpointEntry, FilePath, _core.Payload, Sequence[tuple[FilePath, str]], Sequence[str]],
) -> LoadedBytes:
    """The same of bytes."""
    entry, path, payload, passed_over, sentences = facts
    warn_all(sentences)
    return LoadedBytes(entry, path, memoryview(payload), tuple(passed_over))
