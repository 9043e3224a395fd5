"""Opens a model in one file or several: of those an index tells which tensor lies in which.

    {"metadata": {…}, "weight_map": {TENSOR: FILE, …}}

The index is model.safetensors.index.json, or model.thalia.index.json, in the folder of the files.
"""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _core
from ._file import Access, File, FlatFile, Path, Verification
from ._file import open as open_file
from ._missing import ByName, not_found
from ._operations import paths, read_bounded
from ._tensor import Tensor
from .errors import MissingFileError, make_error, wrong_value

INDEX = ".index.json"
KINDS = ("thalia", "safetensors")
#: Of a folder, the first of these that is there. As transformers does, a whole file before an index.
NAMES = [f"model.{kind}{ending}" for kind in KINDS for ending in ("", INDEX)]
#: As much as a header of safetensors may have.
MAX_INDEX_BYTES = 100_000_000


class ShardedFile(ByName[Tensor]):
    """A model in several files, open as one: tensors by name, in the order of the index.

    A file is opened, and checked against the index, when one of its tensors is first asked for; then
    FormatError tells what does not agree. Any number of threads may use one.
    """

    def __init__(self, index: Path, options: Mapping[str, Any]) -> None:
        self.path: str = os.fspath(index)
        self._options = options
        self._open: dict[str, File | FlatFile] = {}
        metadata, self._shard_of = _read(self.path)
        self.metadata: dict[str, Any] = metadata
        self._names: dict[str, set[str]] = defaultdict(set)
        for name, shard in self._shard_of.items():
            self._names[shard].add(name)

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """All of them by name, as the model itself is."""
        return self

    @property
    def files(self) -> list[File | FlatFile]:
        """All of them, opened and checked."""
        return [self._file(shard) for shard in self._names]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._shard_of:
            raise not_found(f"{self.path}: {name}: no such tensor", name, self, tensor=name)
        return self._file(self._shard_of[name]).tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self._shard_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._shard_of)

    def __len__(self) -> int:
        return len(self._shard_of)

    def close(self) -> None:
        """Lets go of the files. Arrays made of them stay valid, and keep them mapped."""
        for file in self._open.values():
            file.close()
        self._open, self._shard_of, self._names = {}, {}, {}

    def __enter__(self) -> ShardedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ShardedFile {self.path!r}: {len(self)} tensors>"

    def _file(self, shard: str) -> File | FlatFile:
        if shard not in self._open:
            file = open_file(os.path.join(os.path.dirname(self.path), shard), **self._options)
            self._check(shard, file)
            self._open.setdefault(shard, file)
        return self._open[shard]

    def _check(self, shard: str, file: File | FlatFile) -> None:
        wrong = self._names[shard] ^ file.tensors.keys()
        if wrong:
            name = min(wrong)
            expected = f"{shard}, which has" if name in file.tensors else "the file that has"
            raise wrong_value(self.path, f"weight_map.{name}", self._shard_of.get(name), f"{expected} this tensor")


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
    model.safetensors.index.json that is there, or else a checkpoint of another format.

    access: "mapped" reads in place, and all processes share one copy; "copied" reads into memory,
        for files that may shrink or disks that may fail. "writable" reads in place, too, and what lies
        there may be written to: that changes this process's copy alone, and never the file.
    verification: when bytes are checked against the file's checksum: before they are first handed
        out, all now, each tensor by its own CRC-32, or never. Of a model in several files each is
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
    if os.path.isdir(path):
        path = _model_in(path)
    if os.fspath(path).endswith(INDEX):
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


def _model_in(folder: Path) -> str:
    for name in NAMES:
        if os.path.lexists(path := os.path.join(folder, name)):
            return path
    folder = os.fspath(folder)
    if _core.detect_format(folder) in ("mithril-orbax", "safetensors"):
        return folder
    raise make_error(
        MissingFileError,
        f"{folder}: expected {', '.join(NAMES[:-1])} or {NAMES[-1]} in it",
        "io",
        path=folder,
        filename=folder,
        errno=errno.ENOENT,
    )


def _read(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The metadata of an index, and the file of each tensor."""
    data = read_bounded(path, MAX_INDEX_BYTES)
    try:
        content = json.loads(data.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise wrong_value(path, "JSON", str(error), "an object, whole, with each name once") from None
    if not isinstance(content, dict):
        raise wrong_value(path, "JSON", content, "an object")
    metadata: Any = content.get("metadata", {})
    shard_of: Any = content.get("weight_map")
    for field, value in (("metadata", metadata), ("weight_map", shard_of)):
        if not isinstance(value, dict):
            raise wrong_value(path, field, value, "an object")
    for name, shard in shard_of.items():
        # A name that leads out of the folder could make any file of this machine a part of the model.
        if not (isinstance(shard, str) and shard.isprintable() and "/" not in shard and shard.endswith(_ENDINGS)):
            raise wrong_value(
                path, f"weight_map.{name}", shard, "the name of a .thalia or .safetensors file of the folder"
            )
    return metadata, shard_of


_ENDINGS = tuple(f".{kind}" for kind in KINDS)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} twice")
        found[name] = value
    return found
