"""Saves into a run, and what else changes one."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._files.async_saver import AsyncSaver, PendingSave, close_at_exit
from .._files.writer import Writer
from .._keywords import suggests
from .._objects.numpy_objects import declared_by
from .._progress import callback
from .._types import Path
from ._facts import LoadedCheckpoint, PromoteResult, PruneResult, StoredCheckpoint, StoreReport, loaded_of, warn_all
from ._phases import TransitionPlan, TransitionResult, expected_tensors, plan_members
from ._pool import Pool
from ._run import Run, chosen_phase, config_text

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from .._files.writer import SaveOptions
    from ..brain._options import RunOptions

#: By its name, what saves a brain chooses the compression of the file.
_BRAIN_FILE = "checkpoint.thalia"


class StoreHandle(PendingSave[StoredCheckpoint]):
    """A save into a run in the background; `await handle` and `handle.wait()` give its result.

    It is done once the checkpoint is saved and retention has been applied. It goes on where nobody
    keeps its handle. Any thread may use one.
    """


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
        text = None if config is None else config_text(config)
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

    def save(self, writer: CheckpointWriter, *, metric: float | None = None, delta: bool = False) -> StoredCheckpoint:
        """Commits a writer of new_checkpoint(), and applies the phase's retention.

        metric: of the phase's; NaN is never the best.
        delta: it is stored as what differs from the newest checkpoint, where the run's `deltas` say so. By itself it
            is a full file.
        Raises as Writer.commit(); UsageError for a writer of something else.
        """
        writer._finish()
        commit = self._raw.save_as_delta if delta else self._raw.commit
        stored = commit(writer._raw, metric)
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
        return self._begun(saver, writer, metric, snapshot, ready)

    def save_object(
        self,
        step: int,
        obj: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        delta: bool = False,
        **options: Unpack[SaveOptions],
    ) -> StoredCheckpoint:
        """Saves what thalia_checkpoint.save() takes, or where torch is imported thalia_checkpoint.torch.save(): a
        tree of tensors, numbers, texts, modules and optimizers. The load() beside that save() gives it back from
        stored.path.

        Arguments as of new_checkpoint() and save(). Raises as these; UnsupportedError that names the place of what
        cannot be saved.
        """
        writer = _declared(obj, lambda: self.new_checkpoint(step, phase, **options))
        return self.save(writer, metric=metric, delta=delta)

    def save_object_async(
        self,
        saver: AsyncSaver,
        step: int,
        obj: Any,
        phase: str | None = None,
        *,
        metric: float | None = None,
        **options: Unpack[SaveOptions],
    ) -> StoreHandle:
        """The same in the background. This returns after one copy of the tensors, which may change from then on."""
        writer = _declared(obj, lambda: self.new_checkpoint(step, phase, **options))
        return self._begun(saver, writer, metric)

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
        plan = _brain_plan(brain, options)
        stored = self._raw.save_brain(self._phase(phase), step, plan.brain, plan.options, metric, replace)
        self._warn()
        return stored

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
        plan = _brain_plan(brain, options)
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
        stored = save(self._phase(phase), step, data, metric, replace, list(keys))
        self._warn()
        return stored

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
        stored = self._raw.save_file(self._phase(phase), step, file, metric, replace, list(keys))
        self._warn()
        return stored

    def resume(self, phase: str | None = None, *, step: int | None = None) -> LoadedCheckpoint:
        """As Run.load(), and the run goes on from there: that is the latest now, those of larger steps are
        left behind, and what was passed over as damaged is not counted as a checkpoint from here on.

        Raises as Run.load().
        """
        return loaded_of(self._raw.resume(self._phase(phase), step))

    def prune(
        self, phase: str | None = None, *, dry_run: bool = False, retention: Mapping[str, Any] | None = None
    ) -> PruneResult:
        """What every save does at its end, now; dry_run: tells it, and changes nothing.

        retention: the rules of a configuration, in place of the phase's.
        What is to stay is read first, if it is not known to be whole. Raises NotFoundError for a
        phase; FormatError for a rule; IoError.
        """
        text = None if retention is None else config_text({"phases": [{"name": "any", "retention": retention}]})
        result = self._raw.prune(self._phase(phase), dry_run, text)
        self._warn()
        return result

    def promote(
        self,
        phase: str | None = None,
        *,
        step: int | None = None,
        gate: str | None = None,
        force: bool = False,
    ) -> PromoteResult:
        """Copies a checkpoint to gates/, with a digest of its own, where nothing removes it; of a delta its
        state, as a full file. It is held against its digest first.

        step: by itself the phase's best, else its latest. gate: the copy's name; by itself the phase's.
        force: takes the place of the gate that is there.
        Raises ExistsError if there is such a gate; NotFoundError for what is not there; IntegrityError;
        IoError.
        """
        result = self._raw.promote(self._phase(phase), step, gate, force)
        self._warn()
        return result

    def reset_best(self, phase: str | None = None) -> None:
        """Forgets the phase's best: the next metric is, whatever it is. Raises NotFoundError for a phase; IoError."""
        self._raw.reset_best(self._phase(phase))
        self._warn()

    def transition(
        self,
        plan: TransitionPlan,
        *,
        master_seed: int = 0,
        model: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> TransitionResult:
        """Begins the plan's phase: loads its gate, checks it, and writes start.thalia, kl_anchor.thalia if it
        has one, and last transition.json, each with its digest. Nothing is written unless all checks hold.

        master_seed: of the run; that of the phase is made of it.
        model: what compare_with_model() takes. Its tensors have to be those that are carried over, all of them and
            no others.
        force: also where the phase has begun.
        Raises UsageError that lists what of the model does not fit, or names the check that does not hold;
        ExistsError where the phase has begun; NotFoundError for a phase, a gate or a pattern; as Run.load_gate().
        """
        expected = [] if model is None else expected_tensors(model)
        result = self._raw.transition(plan_members(plan), master_seed, expected, force)
        self._warn()
        return result

    def repair(
        self, phase: str | None = None, *, quick: bool = False, dry_run: bool = False, threads: int = 0
    ) -> StoreReport:
        """What Run.verify() does, with its arguments; and repairs what can be repaired without a loss: temporary
        files and digests without a file go, links that lead nowhere are led to what there is, digests that are
        missing are made for files that their own checks vouch for.

        dry_run: as Run.verify(): findings say what can be repaired. Raises as that.
        """
        if dry_run:
            return self._raw.run.verify(phase, quick, threads, None)
        report = self._raw.repair(phase, quick, threads)
        self._warn()
        return report

    @property
    def pool(self) -> Pool:
        """The pool of earlier models, for changing it."""
        return Pool(self)

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

    def _begun(
        self,
        saver: AsyncSaver,
        writer: CheckpointWriter,
        metric: float | None,
        snapshot: str = "copy",
        ready: Callable[[], object] | None = None,
    ) -> StoreHandle:
        writer._finish()
        handle = StoreHandle(self._raw.commit_async(saver._raw, writer._raw, metric, snapshot, ready))
        self._warn()
        return handle

    def _phase(self, phase: str | None) -> str:
        return chosen_phase(phase, self._run.phases)

    def _warn(self) -> None:
        warn_all(self._raw.take_warnings())


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


def _declared(obj: Any, begin: Callable[[], CheckpointWriter]) -> CheckpointWriter:
    if sys.modules.get("torch") is None:
        return declared_by(begin, obj)
    writer: CheckpointWriter
    writer, _ = _above("torch._objects").declare_staged(obj, begin, None)
    return writer


# By their names, as these rooms are above this one, and one of them needs torch.
def _above(name: str) -> Any:
    return import_module(f"thalia_checkpoint.{name}")


def _brain_plan(brain: Any, given: RunOptions) -> Any:
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
