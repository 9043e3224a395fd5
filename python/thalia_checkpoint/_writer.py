"""Writing files: a context manager whose file appears whole, or not at all."""

from __future__ import annotations

import atexit
import json
import os
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np

from . import _core
from ._elements import Elements, elements
from ._file import Path
from ._keywords import suggests
from ._missing import not_found
from ._operations import collector_paused
from ._progress import Progress, callback
from ._tensor import CooArrays, CsrArrays
from .errors import UsageError


class SaveOptions(TypedDict, total=False):
    """Keyword arguments of everything that saves."""

    compression: Literal["none", "plane_entropy", "packed_exponents", "zstd", "lz4", "auto"] | None
    """Without it tensors are stored as they are, to be mapped. "plane_entropy" is made for weights;
    "auto" compresses where that makes the save faster."""
    compression_level: int | None
    """1 to 22 of zstd, 1 to 12 of lz4."""
    chunk_bytes: int | None
    """Raw bytes of a compressed chunk, 4 KiB to 1 GiB; 1 MiB."""
    checksum: Literal["block_tree", "sha256", "crc32", "none"] | None
    """What readers check bytes against; a tree of the hashes of blocks."""
    leaves: Literal["xxh3_128", "sha256"] | None
    """What hashes the blocks of the tree."""
    sha256: bool | None
    """Also NAME.sha256 next to the file."""
    timestamp: int | None
    """Seconds since 1970; now."""
    durability: Literal["full", "data", "none"] | None
    """"full": the file outlives a power loss once the save has returned."""
    replace: bool | None
    """False: a file that is there already stays, and saving raises ExistsError."""
    follow_link: bool | None
    """False: a symbolic link at the path is refused, and not followed to the file that is written."""
    reproducible: bool | None
    """The same input gives the same bytes."""
    io: Literal["automatic", "buffered", "direct"] | None
    """Through the page cache or past it; by itself what suits the file."""
    queue_depth: int | None
    """Direct writes in flight, 1 to 1024; 16."""
    threads: int | None
    """That hash, compress and write; one a core."""
    memory_bytes: int | None
    """Of buffers; 128 MiB."""
    progress: Progress | None
    """Called with bytes done and in all, from a thread of the save. What it raises ends the save.
    True shows a bar, with tqdm."""


@dataclass(frozen=True)
class SaveResult:
    """What a save did."""

    file_bytes: int
    payload_bytes: int
    """Of all tensors, uncompressed."""
    regions: int
    tensors: int
    seconds: float
    sync_seconds: float
    """Of these, waiting for the disk."""
    codec: str
    io: str
    """"buffered" or "direct"."""
    io_fallback: str | None
    """Why it is not what was asked for."""
    sha256: str | None
    closing_checksum: str
    """The file's identity, in hexadecimal."""


Result = TypeVar("Result", bound=object)


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """SaveOptions of saves to come. Raises what the first of them would: TypeError for a name that is not one of them,
    UsageError for a value."""
    _core.check_save_options({name: value for name, value in options.items() if name != "progress"})
    return dict(options)


_RawHandle: TypeAlias = "_core.SaveHandle | _core.StoreHandle | _core.BrainSaveHandle | _core.BrainDeltaHandle"


class PendingSave(Generic[Result]):
    """A save that runs in the background; `await handle` and `handle.wait()` give its result.

    The save goes on where nobody keeps its handle. Any thread may use one. In a forked child `done`,
    wait() and cancel() of one that had not ended raise UsageError: there it never ends.
    """

    def __init__(
        self, raw: _core.SaveHandle | _core.StoreHandle | _core.BrainSaveHandle | _core.BrainDeltaHandle
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

    def __await__(self) -> Generator[Any, None, Result]:
        return self._poll().__await__()

    def _result(self, facts: dict[str, Any]) -> Result:
        raise NotImplementedError

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

    def _result(self, facts: dict[str, Any]) -> SaveResult:
        return SaveResult(**facts)


@suggests
class Writer:
    """Declares regions and tensors, and writes them in one go.

    As a context manager it commits at the end, and leaves no trace where the block raises. The
    file that was at the path stays until the new one is whole. Arrays are borrowed until then:
    change them only afterwards. One call at a time: what another thread, or a callback of progress,
    calls meanwhile raises UsageError. So does commit() in a forked child: the file is the parent's.

        with Writer("model.thalia") as writer:
            writer.add("encoder/weight", weight)
            writer.metadata = {"step": 100}
    """

    def __init__(self, path: Path | int, **options: Any) -> None:
        """path: or the descriptor of an empty file that is open for reading and writing, such as one in
            memory. It stays open, gets no name and is not synced; after an error it holds anything.
        options: those of SaveOptions. Raises IoError, UsageError.
        """
        target = f"descriptor {path}" if isinstance(path, int) else os.fspath(path)
        shown = callback(options.get("progress"), f"saving {target}")
        self._begin(_core.Writer(path, {**options, "progress": shown}))

    def _begin(self, raw: _core.Writer) -> None:
        self._raw = raw
        self._regions: dict[str, int] = {}
        self.metadata: Mapping[str, Any] | str | None = None
        """A JSON object, or its text; set it at any time before the commit, which raises TypeError or
        UsageError if it is none."""
        self.training_steps: int | None = None
        """For the header; set it at any time before the commit."""
        self.result: SaveResult | None = None
        """After the commit."""

    def region(
        self,
        name: str,
        *,
        n_neurons: int = 0,
        n_inputs: int = 0,
        neuron_type: str = "none",
        homeostatic_updated: int = 0,
        config: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Declares a region. Those that are not declared come into being with their first tensor.

        n_neurons, n_inputs: how many neurons it has, and inputs to each of them.
        neuron_type: "lif", "conductance_lif" or "none".
        homeostatic_updated: when its homeostatic state last changed, in seconds since 1970.
        config, metadata: what JSON can hold.
        Raises TypeError for what JSON cannot hold; UsageError for a name that is there already, or
        another neuron_type.
        """
        self._regions[name] = self._raw.add_region(
            name,
            n_neurons,
            n_inputs,
            neuron_type,
            json.dumps(config) if config else "{}",
            "" if metadata is None else json.dumps(metadata),
            homeostatic_updated,
        )

    def add(
        self,
        name: str,
        array: Any,
        *,
        region: str | None = None,
        role: str | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Declares a tensor.

        name: "region/name", or with `region` its own name. A name without a region goes where its
            dots say, as a conversion from safetensors puts it: "layers.0.weight" to "layers.0".
        array: anything numpy takes, with the buffer protocol, or with __dlpack__ in memory of the
            CPU; a tensor of an open file, which is stored in its own element type. One that is not
            contiguous and little-endian is copied. Of CsrArrays and CooArrays `shape` is needed.
        role: "weights", "bias", "optimizer", …; by default what the name tells.

        Raises UsageError for a name that is there already, and after the commit; TypeError for
        sparse arrays without a shape; UnsupportedError for a dtype that no file holds, and for
        memory of another device.
        """
        region, name = _placed(region, name)
        if isinstance(array, CsrArrays | CooArrays):
            self._add_sparse(region, name, array, shape, role)
            return
        self._add_bytes(region, name, *elements(f"{region}/{name}", array), role)

    def add_bytes(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        data: Any,
        *,
        region: str | None = None,
        role: str | None = None,
    ) -> None:
        """Declares a tensor by its elements as the file has them: any contiguous buffer.

        dtype is the format's name, as "bf16". Raises UsageError unless the bytes are as many as
        dtype and shape ask for.
        """
        region, name = _placed(region, name)
        self._add_bytes(region, name, dtype, shape, data, role)

    def add_tensors(
        self, tensors: Iterable[tuple[str, str, tuple[int, ...], Any]], roles: Mapping[str, str] | None = None
    ) -> None:
        """Declares many as add_bytes() does one: name, dtype, shape and data of each, where its name's dots say.

        roles: by name, of those whose names do not tell.
        """
        with collector_paused():
            self._raw.add_tensors(list(tensors), self._regions, dict(roles or {}))

    def connect(self, source: str, target: str, weights: Any, delays: Any = None) -> None:
        """Declares a connection between two declared regions.

        weights, delays: arrays as add() takes them, delays as a rule of the weights' shape.
        Raises NotFoundError for a region that was not declared, UsageError for a second connection
        of the same two; as add().
        """
        for region in (source, target):
            if region not in self._regions:
                raise not_found(f"no region {region!r} was declared", region, self._regions, region=region)
        name = f"{source} to {target}"
        matrices = (
            elements(f"{name}, weights", weights),
            None if delays is None else elements(f"{name}, delays", delays),
        )
        more = matrices[1] or Elements(matrices[0].dtype, (), None)
        self._raw.add_connection(source, target, *matrices[0], *more)

    def commit(self) -> SaveResult:
        """Writes everything, and puts the file in its place. Ctrl-C ends it and leaves the old one.

        Raises IoError with the call that failed; what `progress` raised; UsageError after a commit.
        """
        self._finish()
        self.result = SaveResult(**self._raw.commit())
        return self.result

    def abandon(self) -> None:
        """Ends it without a file, and leaves no trace. Does nothing after a commit.

        Raises UsageError while another call runs."""
        self._raw.abandon()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
        elif self._raw.is_open:
            self.commit()

    def _finish(self) -> None:
        if self.metadata is not None:
            text = self.metadata if isinstance(self.metadata, str) else json.dumps(self.metadata)
            self._raw.set_metadata(text)
        if self.training_steps is not None:
            self._raw.set_training_steps(self.training_steps)

    def _region(self, name: str) -> int:
        if name not in self._regions:
            self.region(name)
        return self._regions[name]

    def _add_bytes(
        self,
        region: str,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        data: Any,
        role: str | None,
    ) -> None:
        role = role or _core.role_of_name(name, len(shape))
        self._raw.add_tensor(self._region(region), name, dtype, shape, role, data)

    def _add_sparse(
        self,
        region: str,
        name: str,
        arrays: CsrArrays | CooArrays,
        shape: tuple[int, ...] | None,
        role: str | None,
    ) -> None:
        if shape is None:
            raise TypeError("sparse arrays need the tensor's shape")
        dtype, _, values = elements(f"{region}/{name}, values", arrays.values)
        indices = arrays.column_indices if isinstance(arrays, CsrArrays) else arrays.indices
        wide = np.dtype(indices.dtype).itemsize == 8
        index = np.dtype("<u8" if wide else "<u4")
        pointers = np.ascontiguousarray(arrays.row_pointers, index) if isinstance(arrays, CsrArrays) else None
        self._raw.add_sparse(
            self._region(region),
            name,
            dtype,
            shape,
            role or _core.role_of_name(name, len(shape)),
            wide,
            pointers,
            np.ascontiguousarray(indices, index),
            values,
        )


def _placed(region: str | None, name: str) -> tuple[str, str]:
    """Where a tensor goes, and its own name there."""
    if region is not None:
        return region, name
    before, slash, rest = name.partition("/")
    return (before, rest) if slash else (_core.region_for_name(name), name)


@suggests
class AsyncSaver:
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

    def __init__(
        self,
        *,
        when_busy: Literal["wait", "queue", "replace", "skip"] = "wait",
        max_unfinished: int = 2,
        max_snapshot_bytes: int = 0,
        background_threads: int = 0,
    ) -> None:
        self._raw = _core.AsyncSaver(when_busy, max_unfinished, max_snapshot_bytes, background_threads)
        _savers.add(self)

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
        return SaveHandle(self._raw.save_async(writer._raw, snapshot, ready))

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
