"""Opening a file, or a model in several."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from .. import _core
from .._keywords import suggests
from .._support import paths
from .._types import Access, Path, Verification
from .any_file import AnyFile
from .file import File, FlatFile, SafetensorsFile
from .shards import ShardedFile


def open_one(
    path: Path,
    *,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> File | FlatFile:
    """One file. open() also takes a model in several."""
    format = _core.detect_format(path)
    if format == "safetensors":
        return SafetensorsFile(_core.SafetensorsFile.open(path, access), os.fspath(path))
    if format not in (None, "thalia"):
        return AnyFile(
            path,
            access,
            verification,
            threads,
            search,
            dequantize=dequantize,
            legacy=legacy,
            shared_memory=shared_memory,
        )
    return File(_core.File.open(path, access, verification, threads, paths(search)))


@suggests
def open(
    path: Path,
    *,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
    shared_memory: bool = False,
) -> File | FlatFile | ShardedFile:
    """Opens a .thalia file, a delta, a .safetensors file, or a model in several of these as one, by
    its folder or its index; headers and tables alone are read. A file of another format, or a
    folder that is one, is an AnyFile.

    Of a folder it is the first of model.thalia, model.thalia.index.json, model.safetensors and
    model.safetensors.index.json that is there, or else a safetensors model of another name or a
    checkpoint of another format. The program and all functions take the same.

    access: "mapped" reads in place, and all processes share one copy; "copied" reads into memory,
        for files that may shrink or disks that may fail. "writable" reads in place, too, and what lies
        there may be written to: that changes this process's copy alone, and never the file.
    verification: when bytes are checked against the file's checksum: before they are first handed
        out, all now, each tensor by its own CRC-32, or never. Each file of a model in several is
        opened later, and "at_open" checks it then.
    threads: that verify and decode; 0 is one a core.
    search: folders in which a delta's base is looked for when it is not where the delta says.
    dequantize: elements in place of the codes of formats with types of their own, as GGUF's blocks.
    legacy: take files that the programs of their formats no longer do.
    shared_memory: of a PyTorch file, tensors that share memory are one tensor, and the tree in the
        metadata says what they are of it. Else each is a tensor of its own.

    Raises MissingFileError, IoError, FormatError, IntegrityError, UnsupportedError.
    """
    options: dict[str, Any] = {
        "access": access,
        "verification": verification,
        "threads": threads,
        "search": paths(search),
        "dequantize": dequantize,
        "legacy": legacy,
        "shared_memory": shared_memory,
    }
    path = _core.find_model(path)
    format = _core.detect_format(path)
    if format == "thalia-shards" or (format == "safetensors" and path.suffix == ".json"):
        return ShardedFile(path, partial(open_one, **options))
    return open_one(path, **options)
