"""Dictionaries of numpy arrays, as safetensors.numpy saves and loads them: in both formats.

from thalia_checkpoint.numpy import load_file, save_file

save_file({"weight": weight}, "model.thalia")
weight = load_file("model.thalia")["weight"]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ._files.any_file import AnyFile, parts, verify_ahead
from ._files.elements import elements
from ._files.file import File
from ._files.memory import claim
from ._files.named import Format, Named, save_named, saved_bytes
from ._files.open import open as open_file
from ._files.safe_open import access_of
from ._files.streams import path_of_bytes
from ._keywords import suggests
from ._types import Path

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = ["load", "load_file", "save", "save_file"]


def _named(tensors: Mapping[str, Any]) -> list[Named]:
    return [Named(name, *elements(name, array)) for name, array in tensors.items()]


@suggests
def save_file(
    tensor_dict: Mapping[str, Any],
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    **options: Unpack[SaveOptions],
) -> None:
    """Saves arrays under their names: as safetensors where the name ends in .safetensors, else as
    .thalia. The file is there whole, and on the disk, when this returns.

    tensor_dict: arrays of any kind that Writer.add() takes.
    metadata: texts. options: those of SaveOptions; of safetensors durability, replace and threads.

    Raises IoError; UsageError for names that cannot be; UnsupportedError for a dtype that the
    format lacks, and for memory of another device.
    """
    save_named(_named(tensor_dict), filename, metadata, options)


@suggests
def load_file(filename: Path, *, mmap: bool = False, backend: str = "mmap") -> dict[str, npt.NDArray[Any]]:
    """All tensors by their names, in memory of their own; the zeros of sparse ones included.

    filename: a file, or the folder or the index of a model in several files.
    mmap: without a copy if that is possible: read-only, and read from the file when touched.
    backend: "mmap" maps the file, "pread" reads it into memory.
    Raises IoError, FormatError, IntegrityError; UnsupportedError for a dtype that needs ml_dtypes;
    UsageError for another backend.
    """
    with open_file(filename, access=access_of(backend)) as file:
        if mmap:
            verify_ahead(file)
        return _all_of(file, writable=not mmap)


@suggests
def save(
    tensor_dict: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    format: Format = "safetensors",
) -> bytes:
    """The bytes that save_file() would write. Raises as it."""
    return saved_bytes(_named(tensor_dict), metadata, format)


def load(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file of any format from its bytes. Raises as load_file()."""
    with path_of_bytes(data) as path, open_file(path) as file:
        return _all_of(file, writable=True)


def _all_of(file: File | AnyFile, *, writable: bool) -> dict[str, npt.NDArray[Any]]:
    tensors = {name: tensor for part in parts(file) for name, tensor in part.tensors.items()}
    claim(tensors.values())
    return {name: tensor._claimed() if writable else tensor.dense() for name, tensor in tensors.items()}
