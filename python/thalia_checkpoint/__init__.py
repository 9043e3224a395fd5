"""Checkpoints of neural networks: memory-mapped reading, crash-safe writing.

    import thalia_checkpoint as thalia

    with thalia.Writer("model.thalia") as writer:
        writer.add("encoder/weight", weight)

    with thalia.open("model.thalia") as file:
        weight = file["encoder"]["weight"].numpy()    # in the mapping: nothing is copied
        rows = file["encoder/weight"][3:7]            # only these are read

docs/python.md is the manual. numpy is all that is needed; `thalia_checkpoint.torch` needs torch.
"""

from __future__ import annotations

from ._core import __version__
from ._file import Connection, File, Region, SafetensorsFile, Tensors, open
from ._safe_open import safe_open
from ._tensor import CooArrays, CsrArrays, Tensor
from ._writer import AsyncSaver, SaveHandle, SaveOptions, SaveResult, Writer
from .errors import (
    CancelledError,
    ExistsError,
    FormatError,
    IntegrityError,
    IoError,
    MissingFileError,
    NotFoundError,
    ThaliaError,
    UnsupportedError,
    UsageError,
)

#: What code that was written for safetensors catches.
SafetensorError = ThaliaError

__all__ = [
    "AsyncSaver",
    "CancelledError",
    "Connection",
    "CooArrays",
    "CsrArrays",
    "ExistsError",
    "File",
    "FormatError",
    "IntegrityError",
    "IoError",
    "MissingFileError",
    "NotFoundError",
    "Region",
    "SafetensorError",
    "SafetensorsFile",
    "SaveHandle",
    "SaveOptions",
    "SaveResult",
    "Tensor",
    "Tensors",
    "ThaliaError",
    "UnsupportedError",
    "UsageError",
    "Writer",
    "__version__",
    "open",
    "safe_open",
]
