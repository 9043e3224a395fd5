"""Opening a file, or a model in several."""

from __future__ import annotations

from collections.abc import Iterable

from .. import _core
from .._keywords import suggests
from .._support import paths
from .._types import Access, Path, Verification
from .any_file import AnyFile, OpenOptions, open_thalia
from .file import File

_DEFAULT = OpenOptions()


def open_one(path: Path, options: OpenOptions = _DEFAULT) -> File | AnyFile:
    """One file. open() also takes a folder with a model."""
    if _core.detect_format(path) in (None, "thalia"):
        return open_thalia(path, options)
    return AnyFile(path, options)


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
) -> File | AnyFile:
    """Opens a .thalia file or a delta, as a File; or a file of another format, a folder that is one, or a
    model in several files, by its folder or its index, as an AnyFile. Headers and tables alone are read.

    A folder is opened by the first file that it has of model.thalia, model.thalia.index.json,
    model.safetensors and model.safetensors.index.json. If it has none of these, it is a safetensors
    model of another name or a checkpoint of another format. The program and all functions take the same.

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

    Raises MissingFileError, IoError, FormatError, IntegrityError, UnsupportedError.
    """
    options = OpenOptions(access, verification, threads, paths(search), dequantize, legacy, shared_memory)
    return open_one(_core.find_model(path), options)
