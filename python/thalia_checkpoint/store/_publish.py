"""A training's side: its states for those who follow it, each as soon as it is made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Unpack

from .. import _core
from .._core import PublishedState
from .._files.async_saver import PendingSave
from .._files.writer import SaveOptions, Writer
from .._keywords import suggests
from .._objects.encoder import Instead
from .._progress import callback
from .._support import ClosedAtEnd, OpenHere
from .._types import Path
from ._facts import warn_all
from ._saves import brain_plan, declared
from ._writer import RunWriter

if TYPE_CHECKING:
    from ..brain._options import RunOptions

__all__ = ["PublishHandle", "PublishWriter", "PublishedState", "Publisher"]


class PublishHandle(PendingSave[PublishedState]):
    """A state that is published in the background; `await handle` and `handle.wait()` give its PublishedState.

    It goes on where nobody keeps its handle. Any thread may use one.
    """


class PublishWriter(Writer):
    """A Writer of a state to publish. Its commit, and the end of its block, are Publisher.publish()."""

    def __init__(self, publisher: Publisher, raw: _core.Writer) -> None:
        self._begin(raw)
        self._publisher = publisher
        self.published: PublishedState | None = None
        """After the commit."""

    def commit(self) -> Any:
        """Publishes it. Raises as Publisher.publish()."""
        self.published = self._publisher._publish(self, None)
        return self.published


@suggests
class Publisher(ClosedAtEnd, OpenHere):
    """Publishes the states of a training into a run, for those who follow it.

        with Publisher("runs/20260115_143022_a1b2c3d4") as publisher:
            publisher.publish({"encoder": weight}, step=1)

    What changed since the last state is written, as the run's `deltas` say, and then followers see it. Steps
    increase: one that is not after the latest is refused, and nothing is written. Where a call raises, the old state
    stays the latest, unless followers saw the new one already: newest tells. One call at a time: another thread
    raises UsageError meanwhile, and so does a forked child. Warnings are those of RunWriter. docs/use/follow.md.
    """

    _instead = "make one in the worker"

    def __init__(
        self,
        run: Path | RunWriter,
        *,
        phase: str | None = None,
        hold: bool = True,
        wait: bool = False,
        durability: Literal["full", "data", "none"] = "full",
    ) -> None:
        """
        run: its folder, whose lock the publisher holds until close(); or a RunWriter, which stays open.
        phase: where the states go; by itself the last one that has a checkpoint, else the first.
        hold: keeps a copy of the state that was published last, so that a delta against it reads no file.
        wait, durability: as of RunWriter(), of a folder.

        Raises as RunWriter(); NotFoundError for a phase; UsageError for a run whose files are no .thalia files.
        """
        self._own = not isinstance(run, RunWriter)
        self._writer = run if isinstance(run, RunWriter) else RunWriter(run, wait=wait, durability=durability)
        try:
            self._raw = _core.Publisher(self._writer._raw, phase or "", hold)
        except BaseException:
            if self._own:
                self._writer.close()
            raise

    @property
    def writer(self) -> RunWriter:
        """For all else that is saved into the run."""
        return self._writer

    @property
    def phase(self) -> str:
        """Where the states go. Raises UsageError after close()."""
        return self._raw.phase

    @property
    def newest(self) -> int | None:
        """The step of the latest, after which the next one comes; None: there is none. Raises IoError; UsageError
        after close()."""
        return self._raw.newest(self._writer._raw)

    def new_checkpoint(self, step: int, **options: Unpack[SaveOptions]) -> PublishWriter:
        """A writer of a state, whose commit publishes it; publish() takes it, too.

        options: but for durability and sha256, which are the run's.
        Raises UsageError for a step that is not after the latest; as publish().
        """
        shown = callback(options.get("progress"), f"publishing step {step}")
        own: dict[str, Any] = {**options, "progress": shown}
        return PublishWriter(self, self._raw.new_checkpoint(self._writer._raw, step, own))

    def publish(
        self,
        state: Any,
        *,
        step: int,
        metric: float | None = None,
        convert: Instead | None = None,
        **options: Unpack[SaveOptions],
    ) -> PublishedState:
        """Publishes what RunWriter.save_object() takes: dictionaries of arrays, modules and state dicts of torch, any
        tree of these. Back once followers see it; what it borrowed may change afterwards.

        metric: of the phase's; NaN is never the best. convert: as of thalia_checkpoint.save().
        options: as of new_checkpoint().
        Raises UsageError for a step that is not after the latest; UnsupportedError that names the place of what
        cannot be saved; IoError, as of a full disk.
        """
        return self._publish(declared(state, lambda: self.new_checkpoint(step, **options), convert), metric)

    def publish_async(
        self,
        state: Any,
        *,
        step: int,
        metric: float | None = None,
        convert: Instead | None = None,
        **options: Unpack[SaveOptions],
    ) -> PublishHandle:
        """The same in the background: back once the state is copied. One that is under way is waited for first.
        Arguments and errors as of publish(); what comes later comes through the handle."""
        writer = declared(state, lambda: self.new_checkpoint(step, **options), convert)
        writer._finish()
        handle = self._raw.publish_async(self._writer._raw, writer._raw, metric)
        self._warn()
        return PublishHandle(handle)

    def publish_brain(
        self, brain: Any, *, step: int, metric: float | None = None, **options: Unpack[RunOptions]
    ) -> PublishedState:
        """Publishes the whole state of a brain, as RunWriter.save_brain() saves it, with its options.
        Raises as that, and as publish()."""
        plan = brain_plan(brain, options)
        published = self._raw.publish_brain(self._writer._raw, step, plan.brain, plan.options, metric)
        self._warn()
        return published

    def close(self) -> None:
        """Waits for what is under way, and lets go of the run, unless a RunWriter was given. All else raises
        UsageError then."""
        self._raw.close()
        if self._own:
            self._writer.close()

    def __repr__(self) -> str:
        return f"<Publisher into {os.fspath(self._writer.run.folder)!r}>"

    def _publish(self, writer: Writer, metric: float | None) -> PublishedState:
        writer._finish()
        published = self._raw.publish(self._writer._raw, writer._raw, metric)
        self._warn()
        return published

    def _warn(self) -> None:
        warn_all(self._writer._raw.take_warnings())
