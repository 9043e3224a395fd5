"""Dictionaries of jax's arrays, as safetensors.flax saves and loads them: in both formats.

from thalia_checkpoint.flax import load_file, save_file

save_file({"weight": weight}, "model.thalia")
weight = load_file("model.thalia")["weight"]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax

from . import numpy as _numpy
from ._files.named import Format
from ._files.safe_open import safe_open
from ._files.streams import path_of_bytes
from ._keywords import suggests
from ._types import Path

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = ["load", "load_file", "save", "save_file"]


@suggests
def save_file(
    tensors: Mapping[str, Any],
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    **options: Unpack[SaveOptions],
) -> None:
    """Saves arrays under their names: as safetensors where the name ends in .safetensors, else as
    .thalia. The file is there whole, and on the disk, when this returns.

    tensors: arrays of jax, and of any kind that Writer.add() takes.
    metadata: texts. options: those of SaveOptions; of safetensors durability, replace and threads.

    Raises IoError; UsageError for names that cannot be; UnsupportedError for a dtype that the
    format lacks.
    """
    _numpy.save_file(tensors, filename, metadata, **options)


@suggests
def load_file(filename: Path, *, backend: str = "mmap") -> dict[str, jax.Array]:
    """All tensors by their names, on the default device; the zeros of sparse ones included. For a model
    in several files: its folder or its index.

    backend: "mmap" maps the file, "pread" reads it into memory.
    Raises IoError, FormatError, IntegrityError; UnsupportedError for a dtype that needs ml_dtypes, and
    where jax without jax_enable_x64 would change numbers of 64 bits; UsageError for another backend.
    """
    with safe_open(filename, "flax", backend=backend) as file:
        return file.get_tensors()


@suggests
def save(
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    format: Format = "safetensors",
) -> bytes:
    """The bytes that save_file() would write. Raises as it."""
    return _numpy.save(tensors, metadata, format=format)


@suggests
def load(data: bytes) -> dict[str, jax.Array]:
    """The arrays of a file of any format from its bytes. Raises as load_file()."""
    with path_of_bytes(data) as path:
        return load_file(path)
