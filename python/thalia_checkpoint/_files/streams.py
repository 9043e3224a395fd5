"""Files that have no path: bytes, and file objects of any kind."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._types import BinaryReader, BinaryWriter, Path, is_reader
from ..errors import IoError, ThaliaError, make_error
from .writer import Writer

Source = Path | bytes | bytearray | memoryview | BinaryReader
#: Bytes that go through a file object in one call.
_PIECE = 16 << 20


@contextmanager
def path_of(source: Source) -> Iterator[Path]:
    """A path that this can be opened at as long as the context; its own, if it has one. Errors name no other.

    A file object is read from its position to its end, where it is afterwards. One of open() that is at
    the begin of a file is not copied, all others into memory alone. What its read() raises goes through.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        with path_of_bytes(source) as path:
            yield path
    elif is_reader(source):
        with _path_of_file(source) as path:
            yield path
    elif isinstance(source, str | os.PathLike):
        yield source
    else:
        raise TypeError(f"got {type(source).__qualname__}, expected a path, bytes or a file object that is read")


@contextmanager
def _path_of_file(source: Any) -> Iterator[Path]:
    if (descriptor := _of_file(source)) is not None:
        name = getattr(source, "name", None)
        with _named(f"/proc/self/fd/{descriptor}", name if isinstance(name, str) else "the file") as path:
            yield path
        source.seek(0, os.SEEK_END)
    elif isinstance(source, io.BytesIO):
        with source.getbuffer() as buffer, buffer[source.tell() :] as data, path_of_bytes(data) as path:
            yield path
        source.seek(0, os.SEEK_END)
    else:
        with _in_memory(lambda memory: _copy(source, memory), "the file") as path:
            yield path


@contextmanager
def path_of_bytes(data: bytes | bytearray | memoryview) -> Iterator[str]:
    """A path that these bytes can be opened at as long as the context; in memory alone. Errors do not name it."""
    with _in_memory(lambda memory: memory.write(data), "the bytes") as path:
        yield path


def write_to(file: BinaryWriter, declared: Callable[[int], Writer]) -> None:
    """Writes what a writer makes to a file object, from its position. declared: as of committed_bytes().

    What its write() raises goes through, and leaves a part there; a write() that takes less is asked again.
    """
    memory = os.memfd_create("thalia", os.MFD_CLOEXEC)
    try:
        size = declared(memory).commit().file_bytes
        for begin in range(0, size, _PIECE):
            _write_all(file, os.pread(memory, min(_PIECE, size - begin), begin))
    finally:
        os.close(memory)


@contextmanager
def _in_memory(fill: Callable[[io.BufferedWriter], object], name: str) -> Iterator[str]:
    memory = os.memfd_create("thalia", os.MFD_CLOEXEC)
    try:
        with os.fdopen(memory, "wb", closefd=False) as file:
            fill(file)
        with _named(f"/proc/self/fd/{memory}", name) as path:
            yield path
    finally:
        os.close(memory)


@contextmanager
def _named(path: str, name: str) -> Iterator[str]:
    """The path, which errors call by this name."""
    try:
        yield path
    except ThaliaError as error:
        error.args = tuple(str(line).replace(path, name) for line in error.args)
        error.path = None
        raise


def _of_file(source: Any) -> int | None:
    """The descriptor of a file object that is all of a file of the disk; None of any other. Its class is one
    of open()'s own: the descriptor of others, as of gzip's, is that of something else."""
    kind = type(source)
    raw = source if kind is io.FileIO else source.raw if kind in (io.BufferedReader, io.BufferedRandom) else None
    if type(raw) is not io.FileIO or not source.readable() or not source.seekable() or source.tell() != 0:
        return None
    if kind is io.BufferedRandom:
        source.flush()
    descriptor: int = raw.fileno()
    return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _copy(source: BinaryReader, memory: io.BufferedWriter) -> None:
    while True:
        data = source.read(_PIECE)
        if data is None:
            raise _would_block("read")
        if isinstance(data, str):
            raise TypeError("the file gives texts; expected one that is opened in binary mode")
        if not data:
            return
        memory.write(data)


def _write_all(file: BinaryWriter, data: bytes) -> None:
    while data:
        taken = file.write(data)
        if taken is None and isinstance(file, io.RawIOBase):
            raise _would_block("write")
        # Many a class says nothing of how much it took.
        if not isinstance(taken, int) or taken >= len(data):
            return
        if taken <= 0:
            raise make_error(IoError, f"the file took {taken} of {len(data)} bytes", "io")
        data = data[taken:]


def _would_block(what: str) -> BlockingIOError:
    return BlockingIOError(f"{what}() of the file would block; expected one that waits")
