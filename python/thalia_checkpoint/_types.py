"""What parameters are, below everything that has them."""

from __future__ import annotations

import os
from typing import Any, Literal, Protocol, TypedDict, TypeGuard

Path = str | os.PathLike[str]
Access = Literal["mapped", "copied", "writable"]
#: Formats without regions, as detect_format() tells them.
OtherFormat = Literal[
    "safetensors", "thalia-0.1", "mckp", "mst", "mithril-quantized", "mithril-orbax", "gptrs", "gptrsten", "entity",
    "loom-json", "pt", "npz", "npy", "gguf", "onnx", "thalia-shards", "slime", "trl",
]  # fmt: skip
Verification = Literal["on_first_touch", "at_open", "by_tensor", "off"]


class ReadOptions(TypedDict, total=False):
    """Those of open() that other ways to read a file take as well."""

    access: Access
    verification: Verification
    threads: int


class BinaryReader(Protocol):
    """A file object that is read: of open(), io.BytesIO, fsspec."""

    def read(self, size: int = ..., /) -> Any: ...


class BinaryWriter(Protocol):
    """A file object that is written to. It need not seek."""

    def write(self, data: bytes, /) -> Any: ...


# By attribute: isinstance() with a protocol does not find what a wrapper, as of tempfile, hands on.
def is_reader(value: object) -> TypeGuard[BinaryReader]:
    return hasattr(value, "read")


def is_writer(value: object) -> TypeGuard[BinaryWriter]:
    return hasattr(value, "write")
