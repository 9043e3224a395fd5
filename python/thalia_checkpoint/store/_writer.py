"""Who holds a run's lock: saves into it, and all else that changes one."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, Literal

from .. import _core
from .._core import RebaseResult
from .._files.async_saver import close_at_exit
from .._keywords import suggests
from .._support import ClosedAtEnd
from .._types import Path
from ._facts import LoadedCheckpoint, PromoteResult, PruneResult, StoreReport, loaded_of
from ._phases import TransitionPlan, TransitionResult, expected_tensors, plan_members
from ._pool import Pool
from ._run import Run, config_text
from ._saves import RunSaves


@suggests
class RunWriter(ClosedAtEnd, RunSaves):
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

    def __repr__(self) -> str:
        return f"<RunWriter of {self._run!r}>"

    @property
    def run(self) -> Run:
        """The run, for reading."""
        return self._run

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

    def rebase(self, phase: str | None = None, *, max_depth: int = 64) -> RebaseResult:
        """Turns the phase's deltas: its newest checkpoint becomes a full file, each older one a delta of the next
        newer. Names, states, metrics, latest and best stay; digests are those of the new files.

        Every checkpoint loads at each moment, after a crash too; what ended early is begun again.
        max_depth: a checkpoint that would be deeper is full. 1 to 255.
        Raises NotFoundError for a phase; UsageError for a run of other files, while a save under way makes a delta
        of one of them, and while a follower is on its way to the latest; UnsupportedError for quantized tensors; as
        Run.load(): all before anything is changed; IoError.
        """
        result = self._raw.rebase(self._phase(phase), max_depth)
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


_open: weakref.WeakSet[RunWriter] = weakref.WeakSet()


def _forsake() -> None:
    for run in list(_open):
        run._raw.forsake()


os.register_at_fork(after_in_child=_forsake)
