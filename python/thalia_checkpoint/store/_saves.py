"""Saves into a run: of what a writer has declared, of objects, brains, bytes and files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .. import _core, _log
from .._files.async_saver import AsyncSaver, PendingSave
from .._files.writer import Writer
from .._keywords import suggests
from .._objects.encoder import Instead, nothing
from .._objects.numpy_objects import declared_by
from .._progress import callback
from .._types import Path
from ._facts import StoredCheckpoint, warn_all
from ._run import Run, chosen_phase

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from ..brain._options import RunOptions

AnyWriter = TypeVar("AnyWriter", bound=Writer)
#: By its name, what saves a brain chooses the compression of the file.
_BRAIN_FILE = "checkpoint.thalia"


class StoreHandle(PendingSave[StoredCheckpoint]):
    """A save into a run in the background; `await handle` and `handle.wait()` give its result.

    It is done once the checkpoint is saved and retention has been applied. It goes on where nobody
    keeps its handle. Any thread may use one.
    """

    _is_told = False

    def _result(self, found: Any) -> StoredCheckpoint:
        stored: StoredCheckpoint = super()._result(found)
        if not self._is_told:
            self._is_told = True
            _tell(stored)
        return stored


@suggests
class RunSaves:
    """The saves of a RunWriter, which is the one class of this one."""

    _raw: _core.RunWriter
    _run: Run

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

    def save(self, writer: CheckpointWriter, *, metric: float | None = None, delta: bool = False) -> StoredCheckpoint:
        """Commits a writer of new_checkpoint(), and applies the phase's retention.

        metric: of the phase's; NaN is never the best.
        delta: it is stored as what differs from the newest checkpoint, where the run's `deltas` say so. By itself it
            is a full file. Where that checkpoint turns out damaged it is one too, with a warning.
        Raises as Writer.commit(); UsageError for a writer of something else, and for a checkpoint that is replaced
        while a save in the background makes a delta of it.
        """
        writer._finish()
        commit = self._raw.save_as_delta if delta else self._raw.commit
        return self._stored(commit(writer._raw, metric))

    def save_async(
        self,
        saver: AsyncSaver,
        writer: CheckpointWriter,
        *,
        metric: float | None = None,
        delta: bool = False,
        snapshot: Literal["copy", "borrowed"] = "copy",
        ready: Callable[[], object] | None = None,
    ) -> StoreHandle:
        """The same in the background, with the arguments of AsyncSaver.save(). Checkpoints follow each other
        in the order of these calls.

        delta: against the newest checkpoint that is saved by now, which no retention removes meanwhile.
        Raises as AsyncSaver.save() and save().
        """
        writer._finish()
        begin = self._raw.save_as_delta_async if delta else self._raw.commit_async
        handle = StoreHandle(begin(saver._raw, writer._raw, metric, snapshot, ready))
        self._warn()
        return handle

    def save_object(
        self,
        step: int,
        obj: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        delta: bool = False,
        convert: Instead | None = None,
        **options: Unpack[SaveOptions],
    ) -> StoredCheckpoint:
        """Saves what thalia_checkpoint.save() takes, or where torch is imported thalia_checkpoint.torch.save(): a
        tree of tensors, numbers, texts, modules and optimizers. The load() beside that save() gives it back from
        stored.path.

        Arguments as of new_checkpoint() and save(); convert: as of thalia_checkpoint.save(). Raises as these;
        UnsupportedError that names the place of what cannot be saved.
        """
        writer = declared(obj, lambda: self.new_checkpoint(step, phase, **options), convert)
        return self.save(writer, metric=metric, delta=delta)

    def save_object_async(
        self,
        saver: AsyncSaver,
        step: int,
        obj: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        delta: bool = False,
        convert: Instead | None = None,
        **options: Unpack[SaveOptions],
    ) -> StoreHandle:
        """The same in the background. This returns after one copy of the tensors, which may change from then on.
        Arguments and errors as of save_object() and save_async()."""
        writer = declared(obj, lambda: self.new_checkpoint(step, phase, **options), convert)
        return self.save_async(saver, writer, metric=metric, delta=delta)

    def save_brain(
        self,
        step: int,
        brain: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        replace: bool = False,
        **options: Unpack[RunOptions],
    ) -> StoredCheckpoint:
        """Saves the whole state of a brain, as a full file or as a delta of the newest checkpoint: as the run's
        `deltas` say. BrainCheckpoint.load(stored.path) gives it back.

        brain: an object with get_full_state(), or a dictionary, as BrainCheckpoint.save() takes it.
        replace: the checkpoint takes the place of one of the same step.
        options: those of BrainCheckpoint.save(): metadata, compression, precision_policy, … But for durability,
            which is the run's.
        Raises as that and as save().
        """
        plan = brain_plan(brain, options)
        return self._stored(self._raw.save_brain(self._phase(phase), step, plan.brain, plan.options, metric, replace))

    def save_brain_async(
        self,
        saver: AsyncSaver,
        step: int,
        brain: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        replace: bool = False,
        snapshot: Literal["copy", "borrowed"] = "copy",
        **options: Unpack[RunOptions],
    ) -> StoreHandle:
        """The same in the background, with `snapshot` as of AsyncSaver.save(). Raises as that."""
        plan = brain_plan(brain, options)
        handle = self._raw.save_brain_async(
            saver._raw, self._phase(phase), step, plan.brain, plan.options, metric, replace, snapshot
        )
        self._warn()
        return StoreHandle(handle)

    def save_bytes(
        self,
        step: int,
        data: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        replace: bool = False,
        keys: Iterable[str] = (),
    ) -> StoredCheckpoint:
        """Saves bytes that are not looked into, whatever the run's extension is. Run.load_bytes() gives them back.

        data: anything contiguous with the buffer protocol; or an iterable of such pieces, which are digested
            while they are written, and never all in memory. What it raises ends the save.
        keys: that the record has, of those that the configuration requires.
        Raises ExistsError for a step that was saved before, unless it is replaced; UsageError for a record
        without a required key, and for a step; NotFoundError for a phase; IoError.
        """
        in_pieces = isinstance(data, Iterable) and not _is_buffer(data)
        save = self._raw.save_pieces if in_pieces else self._raw.save_bytes
        return self._stored(save(self._phase(phase), step, data, metric, replace, list(keys)))

    def save_file(
        self,
        step: int,
        file: Path,
        phase: str | None = None,
        *,
        metric: float | None = None,
        replace: bool = False,
        keys: Iterable[str] = (),
    ) -> StoredCheckpoint:
        """Saves a copy of a file, which shares its blocks where the file system can. In a run of .thalia files it has
        to be one, or the index or folder of a model in several; of a delta, the state that it stands for is saved.

        keys: as of save_bytes(), besides those that are found in the file.
        Raises as that; of a .thalia file IntegrityError for one that is damaged, FormatError.
        """
        return self._stored(self._raw.save_file(self._phase(phase), step, file, metric, replace, list(keys)))

    def _stored(self, stored: StoredCheckpoint) -> StoredCheckpoint:
        _tell(stored)
        self._warn()
        return stored

    def _phase(self, phase: str | None) -> str:
        return chosen_phase(phase, self._run.phases)

    def _warn(self) -> None:
        warn_all(self._raw.take_warnings())


class CheckpointWriter(Writer):
    """A Writer of a run's checkpoint. Its commit, and the end of its block, are RunWriter.save()."""

    def __init__(self, run: RunSaves, raw: _core.Writer) -> None:
        self._begin(raw)
        self._run = run
        self.stored: StoredCheckpoint | None = None
        """After the commit."""

    def commit(self) -> Any:
        """Saves it. Raises as RunWriter.save()."""
        self.stored = self._run.save(self)
        return self.stored


def _tell(stored: StoredCheckpoint) -> None:
    entry = stored.entry
    _log.saved("saved" if entry.base is None else "saved delta", stored.path, entry.file_bytes, stored.seconds)


def declared(obj: Any, begin: Callable[[], AnyWriter], convert: Instead | None) -> AnyWriter:
    """The writer that begin() gives, with all tensors of an object. Raises as RunSaves.save_object()."""
    if sys.modules.get("torch") is None:
        return declared_by(begin, obj, convert or nothing)
    writer: AnyWriter
    writer, _ = _above("torch._objects").declare_staged(obj, begin, None, convert or nothing)
    return writer


# By their names, as these rooms are above this one, and one of them needs torch.
def _above(name: str) -> Any:
    return import_module(f"thalia_checkpoint.{name}")


def brain_plan(brain: Any, given: RunOptions) -> Any:
    """A brain on its way into a run, with its options. Raises as RunSaves.save_brain()."""
    options: dict[str, Any] = {**given}
    return _above("brain._save").plan(
        brain,
        _BRAIN_FILE,
        options.pop("metadata", None),
        compression=options.pop("compression", None),
        level=options.pop("compression_level", None),
        include_homeostatic=options.pop("include_homeostatic", True),
        policy=options.pop("precision_policy", None),
        sparse=options.pop("sparse", True),
        options=options,
    )


def _is_buffer(data: object) -> bool:
    try:
        memoryview(data)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
