"""What operations on whole files share."""

from __future__ import annotations

import gc
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._progress import callback
from .errors import FormatError, IoError, MissingFileError, UnsupportedError, UsageError, make_error, wrong_value

if TYPE_CHECKING:
    from typing import Self

    from ._types import Path


@contextmanager
def io_errors() -> Iterator[None]:
    """Failed system calls as errors of this package."""
    try:
        yield
    except OSError as error:
        if isinstance(error, IoError):
            raise
        cls = MissingFileError if isinstance(error, FileNotFoundError) else IoError
        raised = make_error(cls, str(error), "io", path=os.fsdecode(error.filename) if error.filename else None)
        assert isinstance(raised, IoError)
        raised.errno, raised.filename = error.errno, error.filename
        raise raised from error


def without_link(path: str, flags: int) -> int:
    """The opener of an open(): a link at the path is an OSError, and not followed."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def read_bounded(path: str, most: int) -> bytes:
    """The content of a regular file. Raises MissingFileError, IoError; FormatError for anything else,
    and for a file of more than `most` bytes."""
    with io_errors():
        # Without waiting for who writes to it, if it is a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise wrong_value(path, "type", stat.filemode(status.st_mode), "a regular file")
            # No more than it had: a buffer of that size is made before it is read.
            data = file.read(status.st_size) if status.st_size <= most else b""
    if status.st_size > most:
        raise wrong_value(path, "size", f"{status.st_size} bytes", f"at most {most}", "limit_exceeded")
    return data


class ClosedAtEnd:
    """As a context manager it is closed at the end, whatever happened."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class OpenHere:
    """What this process has open, and no other can be given. Pickling it says what to do instead."""

    __slots__ = ()
    _instead = "open it in the worker, by its path"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"cannot pickle a {type(self).__name__}, which is open in this process: {self._instead}")

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied


def made_as(value: object, **members: object) -> str:
    """The repr() of what is made with options: those that were given, of functions the name alone."""
    given = {name: member for name, member in members.items() if member is not None}
    parts = (f"{name}={'…' if callable(member) else repr(member)}" for name, member in given.items())
    return f"{type(value).__name__}({', '.join(parts)})"


def texts(values: Iterable[str]) -> list[str]:
    """Names or patterns; a single one needs no list."""
    return [values] if isinstance(values, str) else list(values)


@contextmanager
def collector_paused() -> Iterator[None]:
    """For a short time in which many objects are made and none becomes garbage: for every few thousand
    of them the collector would look at all that there are, and torch has hundreds of thousands."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def from_json(text: str, where: str) -> Any:
    """What a text of JSON says that the library has accepted.

    where: what has it, for messages. Raises FormatError for an integer longer than Python reads.
    """
    try:
        with collector_paused():
            return json.loads(text)
    except ValueError as error:
        raise make_error(FormatError, f"{where}: {error}", "bad_value", section="metadata") from None


def paths(values: Path | Iterable[Path]) -> list[Path]:
    """The same of paths."""
    return [values] if isinstance(values, str | os.PathLike) else list(values)


def local_path(path: Path) -> str:
    """The path as a text. Raises UnsupportedError for a URL."""
    name = os.fspath(path)
    if "://" in name:
        raise make_error(
            UnsupportedError,
            f"{name}: a URL; expected a path of a local file system",
            "unsupported_feature",
            path=name,
        )
    return name


def save_options(options: Any, out: Path, inputs: Iterable[Path]) -> dict[str, Any]:
    """SaveOptions of a file that is not replaced unless asked for, and is not one of the inputs.

    Raises UsageError.
    """
    for path in inputs:
        if _is_same_file(path, out):
            raise make_error(
                UsageError,
                f"{os.fspath(out)}: the output is a file that is read",
                "bad_argument",
                path=os.fspath(out),
                field="out",
                value=os.fspath(out),
                expected="another file",
            )
    shown = callback(options.get("progress"), f"writing {os.fspath(out)}")
    return {"replace": False, **options, "progress": shown}


def _is_same_file(a: Path, b: Path) -> bool:
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


def sync(path: str) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
