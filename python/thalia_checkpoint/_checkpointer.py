"""Checkpoints of a training loop, saved beside it."""

from __future__ import annotations

import os
import re
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

import torch

from ._file import Path
from ._staging import Staging
from ._writer import AsyncSaver, SaveHandle
from .errors import FormatError, IntegrityError, MissingFileError, ThaliaError, UsageError, make_error
from .torch import declare_staged, load


class Resumed(NamedTuple):
    """What resume() found."""

    step: int
    path: FilePath
    extra: dict[str, Any]
    """What save() was given beside the state."""


class AsyncCheckpointer:
    """Saves a model and its optimizer every so many steps, while the training goes on.

        with AsyncCheckpointer(model, optimizer, folder="run", every=1000, keep=3) as checkpoints:
            resumed = checkpoints.resume()
            for step in range(resumed.step + 1 if resumed else 1, steps + 1):
                train(step)
                checkpoints.step(step)

    A save stalls the loop for one copy of the state. Of a state on CUDA devices the copies run beside
    the host, into pinned memory, and only what the devices are given next waits for them. Hashing,
    compressing and writing happen on a thread of their own. Files are FOLDER/step-N.thalia. Older ones
    go once a newer one is whole, so that `keep` are left; where the process dies, those that were whole
    are there.

    model, optimizer, scheduler: anything with state_dict() and load_state_dict().
    every: steps between two saves of step().
    keep: checkpoints to keep, at least 1; None for all of them.
    when_busy: what a save does that finds another unfinished, as in AsyncSaver.
    options: those of SaveOptions.

    Not for several threads at once. Raises UsageError for `every` or `keep` below 1.
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
        when_busy: Literal["wait", "queue", "replace", "skip"] = "wait",
        **options: Any,
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
        self._options = options
        self._saver = AsyncSaver(when_busy=when_busy)
        self._running: deque[tuple[FilePath, SaveHandle]] = deque()
        os.makedirs(self._folder, exist_ok=True)

    def step(self, step: int, **extra: Any) -> SaveHandle | None:
        """To be called after each step, from 1 on; saves after every `every`-th.

        Returns the save that was begun, or None. Raises as save().
        """
        self._look_after()
        return self.save(step, **extra) if step % self._every == 0 else None

    def save(self, step: int, **extra: Any) -> SaveHandle:
        """Saves now. extra: anything that `save(obj, path)` takes, such as random states.

        Returns after one copy of the state. Raises as thalia_checkpoint.torch.save(), and what an
        earlier save failed with.
        """
        self._look_after()
        path = self._folder / f"step-{step}.thalia"
        # Deduplicated before the copy: tied weights are stored once here as well.
        state: Mapping[str, Any] = {**self._parts, "step": step, "extra": extra}
        staging = Staging()
        writer, staged = declare_staged(state, path, self._options, staging)
        if staged:
            handle = self._saver.save(writer, snapshot="borrowed", ready=staging.wait)
        else:
            handle = self._saver.save(writer)
        if handle.skipped:
            writer.abandon()
        else:
            self._running.append((path, handle))
        return handle

    def checkpoints(self) -> list[FilePath]:
        """Paths of those that are whole, the latest last."""
        found = []
        for path in self._folder.iterdir():
            match = re.fullmatch(r"step-(\d+)\.thalia", path.name)
            if match is not None:
                found.append((int(match[1]), path))
        return [path for _, path in sorted(found)]

    def resume(self, device: torch.device | str | None = None) -> Resumed | None:
        """Loads the latest checkpoint that can be read into the model, optimizer and scheduler.

        One that is damaged is passed over for the one before it, with a UserWarning. None where there
        is none. Raises the last error where there are some and none can be read; UsageError for one
        without a part, before anything is loaded; IoError.
        """
        failed: ThaliaError | None = None
        for path in reversed(self.checkpoints()):
            try:
                state = load(path, device=device)
            except (FormatError, IntegrityError, MissingFileError) as error:
                warnings.warn(f"a checkpoint is passed over: {error}", UserWarning, stacklevel=2)
                failed = error
                continue
            needed = (*self._parts, "step", "extra")
            if lacking := [name for name in needed if not isinstance(state, dict) or name not in state]:
                raise make_error(
                    UsageError,
                    f"{path}: has no {', '.join(lacking)}; expected what was saved with {', '.join(self._parts)}",
                    "not_found",
                    path=os.fspath(path),
                    field=lacking[0],
                )
            for name, part in self._parts.items():
                part.load_state_dict(state[name])
            return Resumed(state["step"], path, state["extra"])
        if failed is not None:
            raise failed
        return None

    def wait(self) -> None:
        """Until no save is unfinished. Raises what one failed with."""
        while self._running:
            self._running[0][1].wait()
            self._look_after()

    def __enter__(self) -> AsyncCheckpointer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.wait()
        else:
            self._saver.wait_all()  # what is begun is finished; the error in flight counts

    def _look_after(self) -> None:
        done = False
        while self._running and self._running[0][1].done:
            _, handle = self._running.popleft()
            done = True
            error = handle.error
            # One that gave way to a newer one is no failure.
            if error is not None and getattr(error, "code", "") != "cancelled":
                raise error
        if done and self._keep is not None:
            for path in self.checkpoints()[: -self._keep]:
                path.unlink(missing_ok=True)
