"""A model in several files. An index names the file of each tensor, and the library reads it.

    {"metadata": {…}, "weight_map": {TENSOR: FILE, …}}

The index is model.safetensors.index.json, or model.thalia.index.json, in the folder of the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import _core
from .._missing import ByName, not_found
from .._support import from_json
from .._types import Path
from .file import File, FlatFile, closed
from .tensor import Tensor

INDEX = ".index.json"
KINDS = ("thalia", "safetensors")
#: What a model's files are called, in the order in which find_model() looks for them.
NAMES = [f"model.{kind}{ending}" for kind in KINDS for ending in ("", INDEX)]


class ShardedFile(ByName[Tensor]):
    """A model in several files, open as one: tensors by name, in the order of the index.

    A file is opened, and checked against the index, when one of its tensors is first asked for; then
    FormatError tells what does not agree. Any number of threads may use one. After close() everything
    raises UsageError; tensors and arrays that were read before stay valid.
    """

    def __init__(self, index: Path, open_one: Callable[[str], File | FlatFile]) -> None:
        self._path = os.fspath(index)
        self._open_one = open_one
        self._files: dict[int, File | FlatFile] = {}
        raw = _core.ModelIndex.read(index)
        self._open: _core.ModelIndex | None = raw
        self._names = raw.files
        self._places = raw.places
        self._metadata_json = raw.metadata_json

    def _check_open(self) -> None:
        if self._open is None:
            raise closed()

    @property
    def path(self) -> str:
        """That of the index."""
        self._check_open()
        return self._path

    @property
    def metadata(self) -> dict[str, Any]:
        """Those of the index; a copy each time. Empty if they are no object."""
        self._check_open()
        found = from_json(self._metadata_json, self._path) if self._metadata_json else {}
        return found if isinstance(found, dict) else {}

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """All of them by name, as the model itself is."""
        self._check_open()
        return self

    @property
    def files(self) -> list[File | FlatFile]:
        """All of them, opened and checked."""
        self._check_open()
        return [self._file(place) for place in range(len(self._names))]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self:
            raise not_found(f"{self.path}: {name}: no such tensor", name, self, tensor=name)
        return self._file(self._places[name]).tensors[name]

    def __contains__(self, name: object) -> bool:
        self._check_open()
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        self._check_open()
        return iter(self._places)

    def __len__(self) -> int:
        self._check_open()
        return len(self._places)

    def close(self) -> None:
        """Lets go of the files. Arrays made of them stay valid, and keep them mapped."""
        for file in self._files.values():
            file.close()
        self._open, self._files = None, {}

    def __enter__(self) -> ShardedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._open is None:
            return "<ShardedFile, closed>"
        return f"<ShardedFile {self.path!r}: {len(self)} tensors>"

    def _file(self, place: int) -> File | FlatFile:
        if self._open is None:
            raise closed()
        if place not in self._files:
            file = self._open_one(os.path.join(os.path.dirname(self._path), self._names[place]))
            self._open.check(place, list(file.tensors))
            self._files.setdefault(place, file)
        return self._files[place]


def verify_ahead(file: File | FlatFile | ShardedFile) -> None:
    """For those who read all of it, in place: File.verify_ahead() of each part. A safetensors file has no checksums."""
    for part in parts(file):
        if isinstance(part, File):
            part.verify_ahead()


def parts(file: File | FlatFile | ShardedFile) -> list[File | FlatFile]:
    """The one file, or the several, that hold its tensors."""
    return file.files if isinstance(file, ShardedFile) else [file]
