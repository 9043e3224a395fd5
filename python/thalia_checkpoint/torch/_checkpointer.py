"""Checkpoints of a training loop, saved while it goes on."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from .._files.async_saver import AsyncSaver
from .._files.writer import checked
from .._html import of_result
from .._keywords import suggests
from .._objects.encoder import nothing
from .._types import Path
from .._warn import warn_caller
from ..errors import ExistsError, NotFoundError, UsageError, make_error
from ..store import CheckpointWriter, Run, RunWriter, StoreHandle, create_run
from ._encode import check, is_lazy
from ._objects import declare_staged, load
from ._staging import Staging

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions


class Resumed(NamedTuple):
    """What resume() found."""

    step: int
    path: FilePath
    extra: dict[str, Any]
    """What save() was given besides the state."""

    def _repr_html_(self) -> str:
        return of_result(self)


@suggests
class AsyncCheckpointer:
    """Saves a model and its optimizer every so many steps, while the training goes on.

        with AsyncCheckpointer(model, optimizer, folder="run", every=1000, keep=3) as checkpoints:
            resumed = checkpoints.resume()
            for step in range(resumed.step + 1 if resumed else 1, steps + 1):
                train(step)
                checkpoints.step(step)

    A save stalls the loop for one copy of the state. The copies of a state on CUDA devices run while
    the host goes on, into pinned memory, and only what the devices are given next waits for them. Hashing,
    compressing and writing happen on a thread of their own.

    The folder is a run of `thalia_checkpoint.store`, made if there is none, of which a phase is saved
    to: FOLDER/PHASE/checkpoints/ckpt_PHASE_stepNNNNNNNN.thalia. Once a newer one is whole, older ones go
    so that `keep` whole ones are left; one that is damaged is not counted. The latest is what was saved
    last. After going back to an earlier step, those of larger steps are left behind, and go first.
    Where the process dies, those that were whole are there.

    Another process that uses the folder is refused. What is no error and should be known comes as a
    UserWarning.

    model, optimizer, scheduler: anything with state_dict() and load_state_dict().
    every: steps between two saves of step().
    keep: whole checkpoints to keep, at least 1; None for all of them. It takes the place of the `keep_last` of the
        run's configuration, whose other rules hold; a warning says so where that goes.
    metric: the name of what save() and step() are told as `metric`, and whether less or more of it is
        better: ("loss", "min"). The best checkpoint is never removed.
    phase: the name of the run's phase.
    when_busy: what a save does while another one is unfinished, as in AsyncSaver.
    delta: checkpoints are stored as what differs from the newest, where the `deltas` of the run's configuration
        say so. What those that are kept are based on stays beside them.
    convert: as of thalia_checkpoint.torch.save().
    options: those of SaveOptions. A checkpoint of the same step is replaced, unless `replace` is False.

    Not for several threads at once. Raises UnsupportedError that names its place for what of the state cannot
    be saved: it is gone through here, and not only at the first save, without a look into its tensors. Raises
    UsageError for `every` or `keep` below 1; FormatError for a metric or a phase that cannot be; IoError that
    names the process that uses the folder.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        folder: Path,
        every: int,
        keep: int | None = None,
        scheduler: Any = None,
        metric: tuple[str, Literal["min", "max"]] | None = None,
        phase: str = "train",
        when_busy: Literal["wait", "queue", "replace", "skip"] = "wait",
        delta: bool = False,
        convert: Callable[[Any], Any] | None = None,
        **options: Unpack[SaveOptions],
    ) -> None:
        for name, value in (("every", every), ("keep", 1 if keep is None else keep)):
            if value < 1:
                raise make_error(
                    UsageError,
                    f"{name}: got {value}, expected 1 or more",
                    "bad_argument",
                    field=name,
                    value=str(value),
                )
        parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
        self._parts = {name: part for name, part in parts.items() if part is not None}
        self._folder = FilePath(folder)
        self._every = every
        self._keep = keep
        self._metric = metric
        self._phase = phase
        self._delta = delta
        self._options = checked(options)
        self._replace = self._options.pop("replace", None) is not False
        self._durability: Any = self._options.pop("durability", None) or "full"
        self._convert = convert or nothing
        check({name: part for name, part in self._parts.items() if not is_lazy(part)}, self._convert)
        self._saver = AsyncSaver(when_busy=when_busy)
        self._running: deque[StoreHandle] = deque()
        self._run: RunWriter | None = None
        self._newest: int | None = None
        """The step that the next one follows."""
        self._tell_of_other_files()
        latest = self._opened().run.latest(phase)
        self._newest = None if latest is None else latest.step

    def __repr__(self) -> str:
        return f"<AsyncCheckpointer {os.fspath(self._folder)!r}: every {self._every} steps of {', '.join(self._parts)}>"

    def step(self, step: int, *, metric: float | None = None, **extra: Any) -> StoreHandle | None:
        """To be called after each step, from 1 on; saves after every `every`-th.

        Returns the save that was begun, or None. Raises as save().
        """
        self._look_after()
        return self.save(step, metric=metric, **extra) if step % self._every == 0 else None

    def save(self, step: int, *, metric: float | None = None, **extra: Any) -> StoreHandle:
        """Saves now. metric: of the constructor's; NaN is never the best. extra: anything that
        `save(obj, path)` takes, such as random states.

        Returns after one copy of the state. Raises as thalia_checkpoint.torch.save(), and what an
        earlier save failed with; UsageError for a step beyond 99999999.
        """
        self._look_after()
        run = self._opened()
        if self._newest is not None and step < self._newest:
            warn_caller(
                f"{self._folder}: goes back from step {self._newest} to {step}: checkpoints of larger steps are left "
                "behind, and are the first to go"
            )
        if self._delta and self._newest is not None and step <= self._newest:
            self.wait()  # for what may become a delta of the one that is replaced
        # Deduplicated before the copy: tied weights are stored once here as well.
        state: Mapping[str, Any] = {**self._parts, "step": step, "extra": extra}
        staging = Staging()

        def begin() -> CheckpointWriter:
            return run.new_checkpoint(step, self._phase, replace=self._replace, **self._options)

        writer, staged = declare_staged(state, begin, staging, self._convert)
        if staged:
            handle = run.save_async(
                self._saver, writer, metric=metric, delta=self._delta, snapshot="borrowed", ready=staging.wait
            )
        else:
            handle = run.save_async(self._saver, writer, metric=metric, delta=self._delta)
        if handle.skipped:
            writer.abandon()
        else:
            self._newest = step
            self._running.append(handle)
        return handle

    def checkpoints(self) -> list[FilePath]:
        """Paths of those that are there, the latest last; in front those that were left behind."""
        run = Run(self._folder)
        latest = run.latest(self._phase)
        entries = run.list(self._phase)
        if latest is not None:
            entries.sort(key=lambda entry: (entry.step <= latest.step, entry.step))
        return [run.path_of(entry) for entry in entries]

    def resume(self, device: torch.device | str | None = None) -> Resumed | None:
        """Loads the latest checkpoint that is whole into the model, optimizer and scheduler. Its bytes are
        held against their digest first.

        One that is damaged is passed over for the one before it, with a UserWarning, and is not counted
        as a checkpoint from here on: the run goes on from the one that was loaded. None if there is
        none. Raises IntegrityError that lists all if there are some and none is whole; UsageError for
        one without a part, before anything is loaded; IoError.
        """
        self.wait()
        run = self._opened()
        if not run.run.list(self._phase):
            return None
        found = run.resume(self._phase)
        self._newest = found.entry.step
        state = load(found.path, device=device)
        needed = (*self._parts, "step", "extra")
        if lacking := [name for name in needed if not isinstance(state, dict) or name not in state]:
            raise make_error(
                UsageError,
                f"{found.path}: has no {', '.join(lacking)}; expected what was saved with {', '.join(self._parts)}",
                "not_found",
                path=os.fspath(found.path),
                field=lacking[0],
            )
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        return Resumed(state["step"], found.path, state["extra"])

    def wait(self) -> None:
        """Until no save is unfinished. Raises what one failed with."""
        while self._running:
            try:
                self._running[0].wait()
            except Exception:  # told next, unless it gave way to a newer one
                if not self._running[0].done:
                    raise  # nobody may wait here
            self._look_after()

    def close(self) -> None:
        """As wait(), and lets go of the folder. What is called afterwards takes it again."""
        try:
            self.wait()
        finally:
            self._let_go()

    def __enter__(self) -> AsyncCheckpointer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        try:
            self._saver.wait_all()  # what is begun is finished; the error in flight counts
        finally:
            self._let_go()

    def _look_after(self) -> None:
        while self._running and self._running[0].done:
            handle = self._running.popleft()
            if (error := handle.error) is None:
                handle.wait()  # which names it in the log
            elif getattr(error, "code", "") != "cancelled":  # one that gave way to a newer one is no failure
                raise error
        if self._run is not None:
            self._run._warn()

    def _opened(self) -> RunWriter:
        if self._run is None:
            config = self._config()
            self._run = RunWriter(self._folder, durability=self._durability, config=config)
        return self._run

    def _let_go(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def _config(self) -> dict[str, Any]:
        """The run's, with this phase as it is wanted; the run is made if there is none."""
        try:
            config = Run(self._folder).config
        except NotFoundError:
            config = {"phases": [self._as_wanted({"name": self._phase})]}
            with suppress(ExistsError):  # another process has just made it, and the lock decides
                create_run(self._folder, config)
            return config
        phases = {phase["name"]: phase for phase in config["phases"]}
        self._tell_of_rule(phases.get(self._phase, {}).get("retention", {}).get("keep_last"))
        phases[self._phase] = self._as_wanted(phases.get(self._phase, {"name": self._phase}))
        return {**config, "phases": list(phases.values())}

    def _as_wanted(self, phase: dict[str, Any]) -> dict[str, Any]:
        retention = {rule: value for rule, value in phase.get("retention", {}).items() if rule != "keep_last"}
        if self._keep is not None:
            retention["keep_last"] = self._keep
        wanted = {**phase, "retention": retention}
        if self._metric is not None:
            wanted["metric"] = dict(zip(("name", "direction"), self._metric, strict=True))
        return wanted

    def _tell_of_rule(self, count: int | None) -> None:
        if self._keep is None and count is not None:
            warn_caller(
                f"{self._folder}: keep_last = {count} of the run's configuration goes, as keep=None keeps all "
                f"checkpoints from here on; keep={count} goes on with it"
            )

    def _tell_of_other_files(self) -> None:
        if not self._folder.is_dir():
            return
        names = sorted(path.name for path in self._folder.iterdir() if re.fullmatch(r"step-\d+\.thalia", path.name))
        if names:
            warn_caller(
                f"{self._folder}: has {names[0]} and others like it ({len(names)} in all), which an earlier version "
                "saved: they are neither resumed from nor removed. `thalia store save` takes one into the run"
            )
