"""Opening a file, or a model in several."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Literal, get_args, overload

from .. import _core, _log
from .._keywords import suggests
from .._support import paths
from .._types import Access, OtherFormat, Path, Verification
from ..errors import FormatError, UsageError, make_error
from .any_file import AnyFile, OpenOptions
from .file import File

_DEFAULT = OpenOptions()


def open_one(path: Path, options: OpenOptions = _DEFAULT) -> File | AnyFile:
    """One file. open() also takes a folder with a model."""
    raw = _core.open_one(path, *options)
    return File(raw) if isinstance(raw, _core.File) else AnyFile(raw, path, options)


@overload
def open(
    path: Path,
    *,
    format: Literal["thalia"],
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> File: ...
@overload
def open(
    path: Path,
    *,
    format: OtherFormat,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> AnyFile: ...
@overload
def open(
    path: Path,
    *,
    format: None = None,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> File | AnyFile: ...
@suggests
def open(
    path: Path,
    *,
    format: Literal["thalia"] | OtherFormat | None = None,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> File | AnyFile:
    """Opens a .thalia file or a delta, as a File; or a file of another format, a folder that is one, or a
    model in several files, by its folder or its index, as an AnyFile. Headers and tables alone are read.

    A folder is opened by the first file that it has of model.thalia, model.thalia.index.json,
    model.safetensors and model.safetensors.index.json. If it has none of these, it is a safetensors
    model of another name or a checkpoint of another format. The program and all functions take the same.

    format: of the file, as detect_format() tells it. Another one is a FormatError then, and a checker of types
        knows what comes: a File of "thalia", an AnyFile of all else.
    access: "mapped" reads in place, and all processes share one copy; "copied" reads into memory,
        for files that may shrink or disks that may fail. "writable" reads in place, too, and what lies
        there may be written to: that changes this process's copy alone, and never the file.
    verification: when bytes are checked against the file's checksum: before they are first handed
        out, all now, each tensor by its own CRC-32, or never.
    threads: that verify and decode; 0 is one a core.
    search: folders in which a delta's base is looked for when it is not where the delta says.
    dequantize: elements in place of the codes of formats with types of their own, as GGUF's blocks.
    legacy: take files that the programs of their formats no longer do.
    shared_memory: of a PyTorch file, tensors that share memory are one tensor, and the tree in the
        metadata says what they are of it. Else each is a tensor of its own.

    Raises MissingFileError, IoError, FormatError, IntegrityError, UnsupportedError; UsageError for an unknown
    format.
    """
    folders = paths(search) if search else ()
    options = OpenOptions(access, verification, threads, folders, dequantize, legacy, shared_memory)
    found = _core.model_in(path) or path
    if format is not None:
        _need_format(found, format)
    begin = time.perf_counter()
    file = open_one(found, options)
    _log.since(begin, "opened", path)
    return file


def _need_format(path: Path, format: str) -> None:
    known = ("thalia", *get_args(OtherFormat))
    if format not in known:
        raise make_error(
            UsageError,
            f"format: got {format!r}, expected one of {', '.join(known)}",
            "bad_argument",
            field="format",
            value=str(format),
        )
    there = _core.detect_format(path)
    if there not in (None, format):  # what nothing is known of, opening it tells
        raise make_error(
            FormatError,
            f"{os.fspath(path)}: format: got {there}, expected {format}",
            "bad_value",
            path=os.fspath(path),
            field="format",
            value=there,
            expected=format,
        )
