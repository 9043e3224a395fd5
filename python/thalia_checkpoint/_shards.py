"""Opens a model in one file or several. Which file a folder is opened by, and what an index says, the
library tells: of several files an index names the one of each tensor.

    {"metadata": {…}, "weight_map": {TENSOR: FILE, …}}

The index is model.safetensors.index.json, or model.thalia.index.json, in the folder of the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _core
from ._file import Access, File, FlatFile, Path, Verification, closed
from ._file import open as open_file
from ._keywords import suggests
from ._missing import ByName, not_found
from ._operations import from_json, paths
from ._tensor import Tensor

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

    def __init__(self, index: Path, options: Mapping[str, Any]) -> None:
        self._path = os.fspath(index)
        self._options = options
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
            file = open_file(os.path.join(os.path.dirname(self._path), self._names[place]), **self._options)
            self._open.check(place, list(file.tensors))
            self._files.setdefault(place, file)
        return self._files[place]


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
        return ShardedFile(path, options)
    return open_file(path, **options)


def verify_ahead(file: File | FlatFile | ShardedFile) -> None:
    """For those who read all of it, in place: File.verify_ahead() of each part. A safetensors file has no checksums."""
    for part in parts(file):
        if isinstance(part, File):
            part.verify_ahead()


def parts(file: File | FlatFile | ShardedFile) -> list[File | FlatFile]:
    """The one file, or the several, that hold its tensors."""
    return file.files if isinstance(file, ShardedFile) else [file]
