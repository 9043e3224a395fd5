"""The folder of a training run: its checkpoints, which of them stay, and always one to return to.

    from thalia_checkpoint import store

    store.create_run("run", {"phases": [{"name": "train", "retention": {"keep_last": 3}}]})
    with store.RunWriter("run") as run:
        with run.new_checkpoint(1000) as writer:
            writer.add("encoder/weight", weight)
        last = run.resume()    # the latest that is whole
        weight = last.file["encoder/weight"].numpy()

docs/format/store.md says what lies in the folder, and what a crash leaves of it. `thalia store` is the same
in the shell. torch's AsyncCheckpointer saves into such a folder.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._files.async_saver import AsyncSaver, PendingSave, close_at_exit
from .._files.writer import Writer
from .._keywords import suggests
from .._progress import callback
from .._types import Path
from .._warn import warn_caller
from ..errors import UsageError, make_error
from ._facts import (
    CheckpointEntry,
    Entries,
    LoadedCheckpoint,
    PruneResult,
    RetentionDecision,
    StoredCheckpoint,
    loaded_of,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from .._files.writer import SaveOptions

__all__ = [
    "CheckpointEntry",
    "CheckpointWriter",
    "LoadedCheckpoint",
    "PruneResult",
    "RetentionDecision",
    "Run",
    "RunWriter",
    "StoreHandle",
    "StoredCheckpoint",
    "create_run",
]


class StoreHandle(PendingSave[StoredCheckpoint]):
    """A save into a run in the background; `await handle` and `handle.wait()` give its result.

    It is done once the checkpoint is saved and retention has been applied. It goes on where nobody
    keeps its handle. Any thread may use one.
    """


def create_run(folder: Path, config: Mapping[str, Any]) -> Run:
    """Makes the folder of a run, with its configuration as run.json.

    config: the members that docs/format/store.md describes, of which "phases" is needed:
        {"phases": [{"name": "train", "metric": {"name": "loss", "direction": "min"},
        "retention": {"keep_last": 3}}]}.

    Raises ExistsError if there is a run; FormatError that names the member that is wrong; IoError.
    """
    return Run._of(_core.Run.create(folder, json.dumps({"version": 1, **config})))


@suggests
class Run:
    """A run, for those who read it. Any number of processes may, while one saves.

    `phase` may be left out of all calls where the run has one alone. Any number of threads may use one.
    """

    def __init__(self, folder: Path) -> None:
        """Raises NotFoundError where the folder is no run; FormatError for an invalid configuration;
        IoError."""
        self._raw = _core.Run.open(folder)

    @classmethod
    def _of(cls, raw: _core.Run) -> Run:
        run = cls.__new__(cls)
        run._raw = raw
        return run

    @property
    def folder(self) -> FilePath:
        """The folder that it was opened by."""
        return FilePath(self._raw.folder)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as create_run() takes it; a copy each time."""
        config: dict[str, Any] = json.loads(self._raw.config_json)
        return config

    @property
    def phases(self) -> tuple[str, ...]:
        """Their names, in their order."""
        return tuple(phase["name"] for phase in self.config["phases"])

    def path_of(self, entry: CheckpointEntry) -> FilePath:
        """Where a checkpoint's file lies."""
        return FilePath(self._raw.path_of(entry.phase, entry.file))

    def list(self, phase: str | None = None) -> Entries:
        """The checkpoints in the order of their steps; none is opened. Raises NotFoundError for a phase;
        IoError."""
        return self._raw.entries(self._phase(phase))

    def latest(self, phase: str | None = None) -> CheckpointEntry | None:
        """What was saved last, or is resumed from. Those of larger steps were left behind. Raises as list()."""
        return self._raw.latest(self._phase(phase))

    def best(self, phase: str | None = None) -> CheckpointEntry | None:
        """That with the best metric. Raises as list()."""
        return self._raw.best(self._phase(phase))

    def load(
        self,
        phase: str | None = None,
        *,
        step: int | None = None,
        check: Literal["digest", "on_touch"] = "digest",
    ) -> LoadedCheckpoint:
        """Opens the latest checkpoint, or if that is damaged the next older one, with a UserWarning, and so
        on through all that there are.

        step: of this step, and no other.
        check: "digest" reads all of a file first, and holds it against its SHA-256; "on_touch" leaves it
            to the file's own checks, when its tensors are read.

        Raises NotFoundError if there is no checkpoint, or none of that step; IntegrityError that lists
        all that were tried where none can be loaded; of a `step` what is wrong with it; IoError.
        """
        return loaded_of(self._raw.load(self._phase(phase), step, check))

    def _phase(self, phase: str | None) -> str:
        return _chosen(phase, self.phases)


@suggests
class RunWriter:
    """Saves into a run. It holds the run's lock: one at a time, over all processes.

    As a context manager it closes the run at the end. What a process that was killed left of its
    saves is swept up when the next one is made. What is not an error and should be known comes as a
    UserWarning, of saves in the background in a later call. `phase` may be left out where the run has
    one alone. Any number of threads may use one; a process that was forked from this one may not.
    """

    def __init__(
        self,
        folder: Path,
        *,
        wait: bool = False,
        durability: Literal["full", "data", "none"] = "full",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """
        wait: for as long as another process holds the lock.
        durability: as of SaveOptions, of all saves.
        config: in place of the run's own, which is written anew. The phases of the run have to be there.

        Raises IoError that names the holder where another has the lock; UsageError for a config that
        cannot take the place; as Run().
        """
        text = None if config is None else json.dumps({"version": 1, **config})
        self._raw = _core.RunWriter(folder, wait, {"durability": durability}, text)
        close_at_exit(self)
        _open.add(self)
        self._run = Run._of(self._raw.run)
        self._warn()

    @property
    def run(self) -> Run:
        """The run, for reading."""
        return self._run

    def new_checkpoint(self, step: int, phase: str | None = None, **options: Unpack[SaveOptions]) -> CheckpointWriter:
        """A writer of the checkpoint of a step, 0 to 99999999. Its commit saves it; save() and
        save_async() do the same, with a metric.

        options: but for durability and sha256, which are the run's. `replace` has to be True for the
            checkpoint to take the place of one of the same step.

        Raises ExistsError for a step that was saved before, unless it is replaced; NotFoundError for a
        phase; UsageError for a step, and for a run whose files are no .thalia files.
        """
        shown = callback(options.get("progress"), f"saving step {step}")
        own: dict[str, Any] = {**options, "progress": shown}
        replace = own.pop("replace", None) is True
        return CheckpointWriter(self, self._raw.new_checkpoint(self._phase(phase), step, own, replace))

    def save(self, writer: CheckpointWriter, *, metric: float | None = None) -> StoredCheckpoint:
        """Commits a writer of new_checkpoint(), and applies the phase's retention.

        metric: of the phase's; NaN is never the best.
        Raises as Writer.commit(); UsageError for a writer of something else.
        """
        writer._finish()
        stored = self._raw.commit(writer._raw, metric)
        self._warn()
        return stored

    def save_async(
        self,
        saver: AsyncSaver,
        writer: CheckpointWriter,
        *,
        metric: float | None = None,
        snapshot: Literal["copy", "borrowed"] = "copy",
        ready: Callable[[], object] | None = None,
    ) -> StoreHandle:
        """The same in the background, with the arguments of AsyncSaver.save(). Checkpoints follow each other
        in the order of these calls. Raises as that; UsageError for a writer of something else."""
        writer._finish()
        handle = StoreHandle(self._raw.commit_async(saver._raw, writer._raw, metric, snapshot, ready))
        self._warn()
        return handle

    def resume(self, phase: str | None = None, *, step: int | None = None) -> LoadedCheckpoint:
        """As Run.load(), and the run goes on from there: that is the latest now, those of larger steps are
        left behind, and what was passed over as damaged is not counted as a checkpoint from here on.

        Raises as Run.load().
        """
        return loaded_of(self._raw.resume(self._phase(phase), step))

    def prune(self, phase: str | None = None, *, dry_run: bool = False) -> PruneResult:
        """What every save does at its end, now; dry_run: tells it, and changes nothing.

        What is to stay is read first, if it is not known to be whole. Raises NotFoundError for a
        phase; IoError.
        """
        result = self._raw.prune(self._phase(phase), dry_run)
        self._warn()
        return result

    def close(self) -> None:
        """Waits for saves in the background, and lets go of the lock. Everything raises UsageError then."""
        self._raw.close()
        self._warn()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _phase(self, phase: str | None) -> str:
        return _chosen(phase, self._run.phases)

    def _warn(self) -> None:
        for sentence in self._raw.take_warnings():
            warn_caller(sentence)


class CheckpointWriter(Writer):
    """A Writer of a run's checkpoint. Its commit, and the end of its block, are RunWriter.save()."""

    def __init__(self, run: RunWriter, raw: _core.Writer) -> None:
        self._begin(raw)
        self._run = run
        self.stored: StoredCheckpoint | None = None
        """After the commit."""

    def commit(self) -> Any:
        """Saves it. Raises as RunWriter.save()."""
        self.stored = self._run.save(self)
        return self.stored


_open: weakref.WeakSet[RunWriter] = weakref.WeakSet()


def _forsake() -> None:
    for run in list(_open):
        run._raw.forsake()


os.register_at_fork(after_in_child=_forsake)


def _chosen(phase: str | None, phases: tuple[str, ...]) -> str:
    if phase is not None:
        return phase
    if len(phases) == 1:
        return phases[0]
    raise make_error(
        UsageError,
        f"phase: none was given, and the run has {', '.join(phases)}",
        "bad_argument",
        field="phase",
        expected=", ".join(phases),
    )
