"""What a run says of its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

from .. import _core
from .._files.file import File
from .._types import Path
from .._warn import warn_caller


@dataclass(frozen=True)
class CheckpointEntry:
    """What a run knows of a checkpoint without opening it."""

    phase: str
    step: int
    file: str
    """Its name in the phase's folder of checkpoints."""
    file_bytes: int
    saved_at: int
    """Seconds since 1970."""
    metric: float | None
    """What it was saved with."""
    condition: Literal["unknown", "whole", "damaged"]
    """Of this file: "whole" if it is unchanged since it was saved or read, "unknown" if nobody has looked
    since it was changed."""
    base: str | None
    """The file that a delta is based on."""
    protected_by: tuple[str, ...]
    """Why retention leaves it alone: "latest", "best", "gate NAME"."""


Entries = list[CheckpointEntry]  # in the class that has a method of that name


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint that was found whole."""

    entry: CheckpointEntry
    path: FilePath
    file: File
    """Open, and checked."""
    passed_over: tuple[tuple[FilePath, str], ...]
    """Those that were tried before it, and why they could not be loaded."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """What a save did."""

    entry: CheckpointEntry
    path: FilePath
    is_best: bool
    """Of its phase, now."""
    removed: tuple[str, ...]
    """Files that retention did not keep."""
    seconds: float
    sync_seconds: float
    """Of these, waiting for the disk."""


@dataclass(frozen=True)
class RetentionDecision:
    """What becomes of a checkpoint."""

    entry: CheckpointEntry
    fate: Literal["keep", "squash", "remove"]
    """"squash": a delta that becomes a full file, and stays."""
    reason: str


@dataclass(frozen=True)
class PruneResult:
    """What prune() did, or would do."""

    decisions: tuple[RetentionDecision, ...]
    removed: tuple[str, ...]
    freed_bytes: int


def entry_of(facts: dict[str, Any]) -> CheckpointEntry:
    """Of what the core tells."""
    return CheckpointEntry(**{**facts, "protected_by": tuple(facts["protected_by"])})


def stored_of(facts: dict[str, Any]) -> StoredCheckpoint:
    """The same."""
    known = {"entry": entry_of(facts["entry"]), "path": FilePath(facts["path"]), "removed": tuple(facts["removed"])}
    return StoredCheckpoint(**{**facts, **known})


def loaded_of(
    facts: tuple[dict[str, Any], Path, _core.File, Sequence[tuple[Path, str]], Sequence[str]],
) -> LoadedCheckpoint:
    """The same, with the warnings that came with it."""
    entry, path, file, passed_over, sentences = facts
    for sentence in sentences:
        warn_caller(sentence)
    return LoadedCheckpoint(
        entry_of(entry), FilePath(path), File(file), tuple((FilePath(each), why) for each, why in passed_over)
    )
