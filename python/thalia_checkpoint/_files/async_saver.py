"""Saves in the background, and what waits for them at the end of the process."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from .. import _core, _log
from .._keywords import suggests
from .._support import OpenHere, made_as
from .._types import Path
from ..errors import UsageError
from .writer import SaveResult, Writer

Result = TypeVar("Result", bound=object)
_RawHandle: TypeAlias = (
    "_core.SaveHandle | _core.StoreHandle | _core.PublishHandle | _core.BrainSaveHandle | _core.BrainDeltaHandle"
)


class PendingSave(OpenHere, Generic[Result]):
    """A save that runs in the background; `await handle` and `handle.wait()` give its result.

    The save goes on where nobody keeps its handle. Any thread may use one. In a forked child `done`,
    wait() and cancel() of one that had not ended raise UsageError: there it never ends.
    """

    _instead = "wait for it here"

    def __init__(
        self,
        raw: _core.SaveHandle
        | _core.StoreHandle
        | _core.PublishHandle
        | _core.BrainSaveHandle
        | _core.BrainDeltaHandle,
    ) -> None:
        self._raw = raw
        # Kept here, where Python sees what its traceback leads to, and may free it.
        self._failed: BaseException | None = None

    @property
    def done(self) -> bool:
        """Ended: well, with an error, or cancelled."""
        return self._raw.done

    @property
    def skipped(self) -> bool:
        """Not begun, as another one was unfinished: when_busy="skip". wait() raises then."""
        return self._raw.skipped

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes done, and in all."""
        return self._raw.progress

    @property
    def error(self) -> BaseException | None:
        """What wait() would raise; None if there is nothing, or not yet."""
        if self._failed is None and self._raw.done:
            try:
                self._raw.wait(0)
            except BaseException as error:
                self._failed = error
        return self._failed

    def wait(self, timeout: float | None = None) -> Result:
        """Until it has ended. Ctrl-C ends the waiting, and the save goes on.

        timeout: in seconds. Raises TimeoutError after these; what the save failed with, each time;
        CancelledError after cancel(); UsageError in a callback of a save of its saver, and in a forked
        child, until it has ended.
        """
        if (failed := self.error) is not None:
            raise failed
        try:
            result = self._raw.wait(timeout)
        except Exception as error:  # the core hands out what a callback raised only once
            with suppress(UsageError):  # of a save that has not ended, as where nobody may wait for it
                if self._raw.done:
                    self._failed = error
            raise
        if result is None:
            raise TimeoutError(f"the save has not ended within {timeout} s")
        return self._result(result)

    def cancel(self) -> None:
        """Asks it to end, and returns at once. The file that was there stays."""
        self._raw.cancel()

    def __repr__(self) -> str:
        try:
            ended = self.done
        except UsageError:
            ended = None  # in a forked child
        if not ended:
            state = "of another process" if ended is None else "{} of {} bytes".format(*self.progress)
        elif self.skipped:
            state = "skipped"
        else:
            state = "saved" if self.error is None else f"failed: {type(self.error).__name__}"
        return f"<{type(self).__name__}, {state}>"

    def __await__(self) -> Generator[Any, None, Result]:
        return self._poll().__await__()

    def _result(self, found: Any) -> Result:
        """What is given of what the core found."""
        result: Result = found
        return result

    async def _poll(self) -> Result:
        import asyncio  # slow to import, and only needed here

        # A thread that waits would hold the loop's executor back; a look now and then does not.
        pause = 0.001
        while not self.done:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return self.wait()


class SaveHandle(PendingSave[SaveResult]):
    """A save that runs in the background; `await handle` and `handle.wait()` give its result.

    The save goes on where nobody keeps its handle. Any thread may use one.
    """

    #: The path of the file, for the log; None once that has it.
    _path: Path | int | None = None

    def _result(self, found: Any) -> SaveResult:
        result = super()._result(found)
        path, self._path = self._path, None
        return result if path is None else _log.done("saved", path, result)


@suggests
class AsyncSaver(OpenHere):
    """Saves in the background: a save returns after one copy of the arrays.

        saver = AsyncSaver()
        handle = saver.save(writer)   # the arrays may change from here on
        ...
        handle.wait()

    when_busy: what a save does while another one is unfinished: "wait" for it, "queue" after it,
        "replace" it, or "skip", which begins nothing: SaveHandle.skipped.
    max_unfinished: saves at a time, each with a copy of its own.
    max_snapshot_bytes: memory of all copies; 0 is half of the machine's.
    background_threads: 0 is a quarter of the cores, 1 to 4.

    At the end of the process, what is being saved is saved first, and errors that no handle has raised
    are printed; Ctrl-C cancels it.

    Raises UsageError for an option that cannot be. Any number of threads may use one. A callback of a
    save (progress, ready) that saves or waits by the same saver raises UsageError: it would wait for
    itself. So does a forked child: make a new one there.
    """

    _instead = "make one in the worker"

    def __init__(
        self,
        *,
        when_busy: Literal["wait", "queue", "replace", "skip"] = "wait",
        max_unfinished: int = 2,
        max_snapshot_bytes: int = 0,
        background_threads: int = 0,
    ) -> None:
        self._raw = _core.AsyncSaver(when_busy, max_unfinished, max_snapshot_bytes, background_threads)
        self._when_busy = when_busy
        _savers.add(self)

    def __repr__(self) -> str:
        return made_as(self, when_busy=self._when_busy)

    def save(
        self,
        writer: Writer,
        *,
        snapshot: Literal["copy", "borrowed"] = "copy",
        ready: Callable[[], object] | None = None,
    ) -> SaveHandle:
        """Takes over a writer that was not committed, and commits it in the background.

        snapshot: "copy" returns after a copy of the arrays, which may change from then on. "borrowed"
            copies nothing: the arrays stay as they are until the handle is done, well, cancelled or
            failed. The saver keeps them until then, and lets go of them in its next save() or
            wait_all(), or at its own end.
        ready: called by the thread that writes, before it reads an array that is borrowed: it may wait
            for a device that still copies to them. What it raises the save fails with.

        Raises UsageError for a writer that was committed, or whose copy takes more than
        `max_snapshot_bytes`.
        """
        writer._finish()
        handle = SaveHandle(self._raw.save_async(writer._raw, snapshot, ready))
        handle._path = writer._path
        return handle

    def reserve(self, nbytes: int) -> None:
        """Makes memory ready for a copy of so many bytes, so that the first save is as fast as all."""
        self._raw.reserve(nbytes)

    def wait_all(self) -> None:
        """Until no save is unfinished. Raises the oldest error that no handle has raised.

        Ctrl-C ends the waiting, and no save.
        """
        self._raw.wait_all()

    @property
    def snapshot_bytes(self) -> int:
        """Memory held for copies."""
        return self._raw.snapshot_bytes

    def _finish(self) -> None:
        while True:
            try:
                return self._raw.wait_all()
            except Exception as error:
                sys.excepthook(type(error), error, error.__traceback__)


class _Closed(Protocol):
    def close(self) -> object: ...


_savers: weakref.WeakSet[AsyncSaver] = weakref.WeakSet()
_closed_after: weakref.WeakSet[_Closed] = weakref.WeakSet()
for _open in (_savers, _closed_after):
    os.register_at_fork(after_in_child=_open.clear)  # their threads are not there


def close_at_exit(thing: _Closed) -> None:
    """Has something closed at the end of the process that waits for what the savers save."""
    _closed_after.add(thing)


@atexit.register
def _close_savers() -> None:
    savers = list(_savers)
    finished = False
    try:
        for saver in savers:
            saver._finish()
        finished = True
    finally:
        # All of them, also after Ctrl-C: no thread of theirs may be left.
        for saver in savers:
            saver._raw.close(not finished)
        for thing in list(_closed_after):
            thing.close()
