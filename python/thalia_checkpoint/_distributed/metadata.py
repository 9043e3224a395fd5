"""checkpoint.json of a distributed checkpoint: what is where.

    {"format": "thalia-distributed", "version": 1,
     "files": [{"name", "bytes", "uuid"}, …],
     "tensors": {NAME: {"dtype", "shape", "chunks": [{"offset", "shape", "file", "region", "name"}, …]}, …},
     "values": {NAME: {"tree"} or {"tree", "file", "region"}, …},
     "paths": {NAME: [key or index, …], …} or null,
     "sha256": of all bytes before it}

`file` is a place in `files`. Trees are described in docs/use/python.md; `file` and `region` are
where its tensors lie. `paths` tells where the names were in the nested state.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

NAME = "checkpoint.json"
FORMAT = "thalia-distributed"
VERSION = 1
#: What torch calls its own, if it is asked for.
TORCH_NAME = ".metadata"
#: While a save goes on: how many ranks there are.
RANKS_NAME = ".ranks"
#: When it has failed.
FAILED_NAME = ".failed"
_FILE_NAME = re.compile(r"rank-[0-9]{1,9}\.thalia")
_PART_NAME = re.compile(r"\.rank-[0-9]{1,9}\.part")


@dataclass(frozen=True)
class StoredFile:
    name: str
    """In the folder of the checkpoint."""
    bytes: int
    uuid: str


@dataclass(frozen=True)
class Chunk:
    """A part of a tensor, and the tensor of a file that it is."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    file: StoredFile
    region: str
    name: str


@dataclass(frozen=True)
class StoredTensor:
    dtype: str
    """The format's name."""
    shape: tuple[int, ...]
    chunks: list[Chunk]


@dataclass(frozen=True)
class StoredValue:
    tree: Any
    file: StoredFile | None
    """Where the tree's tensors lie; None if it has none."""
    region: str


@dataclass(frozen=True)
class Document:
    files: list[StoredFile]
    tensors: dict[str, StoredTensor]
    values: dict[str, StoredValue]
    paths: dict[str, tuple[str | int, ...]] | None
    sha256: str = field(default="", compare=False)
    """The digest of the file that it was read from."""


def file_name(rank: int) -> str:
    """The file of a rank, or of several ranks of which it is the first."""
    return f"rank-{rank}.thalia"


def is_file_name(name: str) -> bool:
    return _FILE_NAME.fullmatch(name) is not None


def part_name(rank: int) -> str:
    """While a save goes on: what a rank has of a file that it shares."""
    return f".rank-{rank}.part"


def is_part_name(name: str) -> bool:
    return _PART_NAME.fullmatch(name) is not None


def to_bytes(document: Document) -> bytes:
    """The file's bytes."""
    numbers = {file: i for i, file in enumerate(document.files)}
    tensors = {
        name: {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "chunks": [{**vars(chunk), "file": numbers[chunk.file]} for chunk in tensor.chunks],
        }
        for name, tensor in document.tensors.items()
    }
    values = {
        name: {"tree": value.tree}
        if value.file is None
        else {"tree": value.tree, "file": numbers[value.file], "region": value.region}
        for name, value in document.values.items()
    }
    content = {
        "format": FORMAT,
        "version": VERSION,
        "files": [vars(file) for file in document.files],
        "tensors": tensors,
        "values": values,
        "paths": document.paths,
    }
    body = json.dumps(content, allow_nan=False)[:-1].encode("ascii")
    return body + f', "sha256": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode("ascii")
