"""What a run says of its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from .. import _core
from .._core import CheckpointEntry, PruneResult, RetentionDecision, StoredCheckpoint
from .._files.file import File
from .._warn import warn_caller

Entries = list[CheckpointEntry]  # in the class that has a method of that name


__all__ = [
    "CheckpointEntry",
    "Entries",
    "LoadedCheckpoint",
    "PruneResult",
    "RetentionDecision",
    "StoredCheckpoint",
    "loaded_of",
]


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint that was found whole."""

    entry: CheckpointEntry
    path: FilePath
    file: File
    """Open, and checked."""
    passed_over: tuple[tuple[FilePath, str], ...]
    """Those that were tried before it, and why they could not be loaded."""


def loaded_of(
    facts: tuple[CheckpointEntry, FilePath, _core.File, Sequence[tuple[FilePath, str]], Sequence[str]],
) -> LoadedCheckpoint:
    """The checkpoint that the core reports. The warnings that came with it are issued."""
    entry, path, file, passed_over, sentences = facts
    for sentence in sentences:
        warn_caller(sentence)
    return LoadedCheckpoint(entry, path, File(file), tuple(passed_over))
