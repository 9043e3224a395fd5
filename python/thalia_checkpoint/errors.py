"""Exceptions. Each carries what the library knows as attributes.

ThaliaError
├── IoError (OSError): a system call failed; ``errno`` is its number
│   └── MissingFileError (FileNotFoundError): there is no such file
├── FormatError (ValueError): the file breaks its format, or is cut short
├── IntegrityError: bytes are not those that were written
├── UnsupportedError: this version, or the target, has no such thing
├── UsageError (ValueError): an argument that cannot be
│   ├── NotFoundError (KeyError): no such region, tensor or name
│   └── ExistsError: the file is there already
└── CancelledError: ended on request
"""

from __future__ import annotations

import errno as _errno
from typing import Any

from ._core import printable

__all__ = [
    "CancelledError",
    "ExistsError",
    "FormatError",
    "IntegrityError",
    "IoError",
    "MissingFileError",
    "NotFoundError",
    "ThaliaError",
    "UnsupportedError",
    "UsageError",
]


class ThaliaError(Exception):
    """The base of all errors of this package. Attributes are None if they do not apply.

    A message of several lines has each of them as an argument; str() puts them below each other.
    """

    code: str = ""
    """What went wrong, in one word that stays the same: "truncated", "not_found", …"""
    path: str | None = None
    """The file."""
    section: str | None = None
    """The part of the file: "header", "directory", "payload", …"""
    field: str | None = None
    """The field of the format, or the argument."""
    region: str | None = None
    tensor: str | None = None
    offset: int | None = None
    """In bytes from the start of the file."""
    value: str | None = None
    """What was found."""
    expected: str | None = None
    """What would have been right."""

    def __init__(self, *args: object) -> None:
        # Names of files, tensors and types are untrusted, and messages go to terminals and logs.
        # Line ends too are escaped: those of a message's own are between its arguments.
        super().__init__(*(printable(arg) if isinstance(arg, str) else arg for arg in args))

    def __str__(self) -> str:
        # A KeyError would show its argument in quotation marks.
        return "\n  ".join(map(str, self.args))


class IoError(ThaliaError, OSError):
    """A system call failed."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An OSError of one argument loses these on the way to another process.
        return type(self), self.args, {**self.__dict__, "errno": self.errno, "filename": self.filename}


class MissingFileError(IoError, FileNotFoundError):
    """There is no such file."""


class FormatError(ThaliaError, ValueError):
    """The file breaks its format, or is cut short."""


class IntegrityError(ThaliaError):
    """Bytes are not those that were written."""


class UnsupportedError(ThaliaError):
    """This version, or the target, has no such thing."""


class UsageError(ThaliaError, ValueError):
    """An argument that cannot be."""


class NotFoundError(UsageError, KeyError):
    """No such region, tensor or name."""


class ExistsError(UsageError):
    """The file is there already, and was not to be replaced."""


class CancelledError(ThaliaError):
    """Ended on request; the file that was there stays."""


_KINDS: dict[str, type[ThaliaError]] = {
    "io": IoError,
    "format": FormatError,
    "integrity": IntegrityError,
    "unsupported": UnsupportedError,
    "usage": UsageError,
    "cancelled": CancelledError,
}
_CODES: dict[str, type[ThaliaError]] = {"not_found": NotFoundError, "exists": ExistsError}


def _from_core(kind: str, text: str, facts: dict[str, Any], number: int) -> ThaliaError:
    """The exception for an error of the library, whose facts become attributes."""
    cls = _KINDS.get(kind, ThaliaError)
    if cls is UsageError:
        cls = _CODES.get(facts["code"], UsageError)
    if cls is IoError and number == _errno.ENOENT:
        cls = MissingFileError
    error = cls(text)
    for name, value in facts.items():
        setattr(error, name, value)
    if isinstance(error, OSError):
        error.errno = number
        error.filename = facts["path"]
    return error


def make_error(cls: type[ThaliaError], text: str | list[str], code: str, **facts: str | int | None) -> ThaliaError:
    """An error of this package's own, with the same attributes as the library's.

    text: the message; of several lines, a list of them.
    """
    error = cls(text) if isinstance(text, str) else cls(*text)
    error.code = code
    for name, value in facts.items():
        quoted = name in ("value", "expected") and isinstance(value, str)
        setattr(error, name, printable(str(value)) if quoted else value)
    return error


def wrong_value(path: str, field: str, value: object, expected: str, code: str = "bad_value") -> ThaliaError:
    """A FormatError for a field of a file's JSON; a long value is cut."""
    shown = value if isinstance(value, str) else repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "…"
    return make_error(
        FormatError,
        f"{path}: {field}: got {shown}, expected {expected}",
        code,
        path=path,
        section="metadata",
        field=field,
        value=shown,
        expected=expected,
    )
