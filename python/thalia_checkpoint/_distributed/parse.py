"""Reads checkpoint.json of a distributed checkpoint. Every value of it is checked."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .._files.dtypes import BITS, is_packed
from .._support import read_bounded
from ..errors import wrong_value
from .metadata import FORMAT, NAME, VERSION, Chunk, Document, StoredFile, StoredTensor, StoredValue, is_file_name

MAX_BYTES = 1 << 30
#: As many as torch has.
MAX_DIMENSIONS = 64
#: The most keys of a path, and the most levels of JSON of a tree: three for each of its containers.
MAX_KEYS = 80
MAX_LEVELS = 256
#: Items of lists that have no name, beside as many as there are names: each was an empty container.
MAX_EMPTY = 1024
#: How often a chunk is looked at, for each of its dimensions and 16 more, before this gives up.
MAX_LOOKS = 4
#: The only packed elements that are read: torch has them, two in a byte.
_PAIRS = "f4_e2m1"
_SEAL = re.compile(rb', "sha256": "([0-9a-f]{64})"\}\n')
_SEAL_BYTES = len(', "sha256": ""}\n') + 64


def read(folder: str) -> Document:
    """The checked content of the file in a folder.

    Raises MissingFileError, IoError; FormatError that names the field, what it has and what was
    expected.
    """
    path = os.path.join(folder, NAME)
    return from_bytes(read_bounded(path, MAX_BYTES), path)


def from_bytes(data: bytes, path: str) -> Document:
    """The content, checked. `path` is for errors. Raises FormatError."""
    if len(data) > MAX_BYTES:
        raise wrong_value(path, "size", f"{len(data)} bytes", f"at most {MAX_BYTES}", "limit_exceeded")
    body, seal = data[:-_SEAL_BYTES], _SEAL.fullmatch(data[-_SEAL_BYTES:])
    if seal is None:
        raise wrong_value(
            path, "sha256", data[-_SEAL_BYTES:], "a hash at the end; the file is cut short or no such file"
        )
    if hashlib.sha256(body).hexdigest().encode("ascii") != seal[1]:
        raise wrong_value(
            path, "sha256", seal[1].decode(), "the hash of what the file has: it is damaged", "bad_checksum"
        )
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise wrong_value(path, "JSON", str(error), "an object") from None
    return replace(_Checker(path).document(content), sha256=seal[1].decode())


class _Checker:
    """What JSON gave, as what it is to be. Fields are named as in files[0].bytes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: list[StoredFile] = []

    def document(self, content: Any) -> Document:
        top = self._members(content, "the file", ("format", "version", "files", "tensors", "values", "paths", "sha256"))
        if top["format"] != FORMAT:
            raise self._wrong("format", top["format"], FORMAT)
        if self._integer(top["version"], "version") != VERSION:
            raise wrong_value(self._path, "version", top["version"], str(VERSION), "unsupported_version")
        for i, item in enumerate(self._list(top["files"], "files")):
            self._files.append(self._file(item, f"files[{i}]"))
        names = [file.name for file in self._files]
        if len(set(names)) != len(names):
            raise self._wrong("files", names, "each name once")
        tensors = {
            name: self._tensor(item, f"tensors.{name}") for name, item in self._dict(top["tensors"], "tensors").items()
        }
        values = {
            name: self._value(item, f"values.{name}") for name, item in self._dict(top["values"], "values").items()
        }
        if both := tensors.keys() & values.keys():
            raise self._wrong("values", min(both), "names that are no tensor's")
        known = tensors.keys() | values.keys()
        return Document(self._files, tensors, values, self._paths(top["paths"], known))

    def _file(self, item: Any, field: str) -> StoredFile:
        file = self._members(item, field, ("name", "bytes", "uuid"))
        name = self._text(file["name"], f"{field}.name")
        if not is_file_name(name):
            raise self._wrong(f"{field}.name", name, "rank-N.thalia, a file of this folder")
        return StoredFile(
            name, self._integer(file["bytes"], f"{field}.bytes"), self._text(file["uuid"], f"{field}.uuid")
        )

    def _tensor(self, item: Any, field: str) -> StoredTensor:
        tensor = self._members(item, field, ("dtype", "shape", "chunks"))
        dtype = self._text(tensor["dtype"], f"{field}.dtype")
        if dtype not in BITS or (is_packed(dtype) and dtype != _PAIRS):
            raise self._wrong(f"{field}.dtype", dtype, f"an element type of whole bytes, or {_PAIRS}")
        shape = self._extents(tensor["shape"], f"{field}.shape")
        if math.prod(shape) * BITS[dtype] // 8 >= 1 << 63:
            raise self._wrong(f"{field}.shape", shape, "less than 2^63 bytes")
        chunks = [
            self._chunk(chunk, f"{field}.chunks[{i}]", shape)
            for i, chunk in enumerate(self._list(tensor["chunks"], f"{field}.chunks"))
        ]
        try:
            covered = bool(chunks) and covers(shape, [(chunk.offset, chunk.shape) for chunk in chunks])
        except OverflowError as error:
            raise wrong_value(self._path, f"{field}.chunks", str(error), "parts of a grid", "limit_exceeded") from None
        if not covered:
            raise self._wrong(f"{field}.chunks", len(chunks), f"chunks that cover {list(shape)}, each element once")
        if dtype == _PAIRS:
            for last in (shape[-1:], *(each[-1:] for chunk in chunks for each in (chunk.offset, chunk.shape))):
                if not last or last[0] % 2:
                    raise self._wrong(f"{field}.shape", list(shape), "pairs in the last dimension, of every chunk too")
        return StoredTensor(dtype, shape, chunks)

    def _chunk(self, item: Any, field: str, whole: tuple[int, ...]) -> Chunk:
        chunk = self._members(item, field, ("offset", "shape", "file", "region", "name"))
        offset = self._extents(chunk["offset"], f"{field}.offset")
        shape = self._extents(chunk["shape"], f"{field}.shape")
        if not len(offset) == len(shape) == len(whole):
            raise self._wrong(f"{field}.shape", shape, f"{len(whole)} dimensions")
        if any(begin + n > extent for begin, n, extent in zip(offset, shape, whole, strict=True)):
            raise self._wrong(f"{field}.offset", offset, f"a part of {list(whole)} that is {list(shape)}")
        file = self._file_number(chunk["file"], f"{field}.file")
        region = self._text(chunk["region"], f"{field}.region")
        return Chunk(offset, shape, file, region, self._text(chunk["name"], f"{field}.name"))

    def _value(self, item: Any, field: str) -> StoredValue:
        level, nodes = 0, [item]
        while nodes := [inner for node in nodes if isinstance(node, dict | list) for inner in _inner(node)]:
            if (level := level + 1) > MAX_LEVELS:
                raise self._wrong(field, level, f"at most {MAX_LEVELS} levels")
        if isinstance(item, dict) and item.keys() == {"tree"}:
            return StoredValue(item["tree"], None, "")
        value = self._members(item, field, ("tree", "file", "region"))
        file = self._file_number(value["file"], f"{field}.file")
        return StoredValue(value["tree"], file, self._text(value["region"], f"{field}.region"))

    def _paths(self, item: Any, known: set[str]) -> dict[str, tuple[str | int, ...]] | None:
        if item is None:
            return None
        paths: dict[str, tuple[str | int, ...]] = {}
        for name, path in self._dict(item, "paths").items():
            field = f"paths.{name}"
            if name not in known:
                raise self._wrong(field, name, "the name of a tensor or value")
            keys = self._list(path, field)
            for key in keys:
                if not isinstance(key, str) and self._integer(key, field) >= len(known) + MAX_EMPTY:
                    raise self._wrong(field, key, f"an index under {len(known) + MAX_EMPTY}")
            if not 0 < len(keys) <= MAX_KEYS or not isinstance(keys[0], str):
                raise self._wrong(field, keys, f"a key, and keys and indices after it, {MAX_KEYS} at most")
            paths[name] = tuple(keys)
        # Lists are made as long as an index asks for. All but empty items have names. A few indices in each
        # other would still ask for millions of items.
        if (empty := _items_without_names(paths.values())) > len(known) + MAX_EMPTY:
            raise wrong_value(
                self._path,
                "paths",
                f"{empty} items of lists that have no name",
                f"at most {len(known) + MAX_EMPTY}",
                "limit_exceeded",
            )
        return paths

    def _file_number(self, item: Any, field: str) -> StoredFile:
        number = self._integer(item, field)
        if number >= len(self._files):
            raise self._wrong(field, number, f"a place in files, of which there are {len(self._files)}")
        return self._files[number]

    def _extents(self, item: Any, field: str) -> tuple[int, ...]:
        items = self._list(item, field)
        if len(items) > MAX_DIMENSIONS:
            raise self._wrong(field, len(items), f"at most {MAX_DIMENSIONS} dimensions")
        return tuple(self._integer(extent, field) for extent in items)

    def _integer(self, item: Any, field: str) -> int:
        if type(item) is not int or not 0 <= item < 1 << 63:
            raise self._wrong(field, item, "an integer from 0 to 2^63 - 1")
        return item

    def _text(self, item: Any, field: str) -> str:
        if not isinstance(item, str):
            raise self._wrong(field, item, "a text")
        return item

    def _list(self, item: Any, field: str) -> list[Any]:
        if not isinstance(item, list):
            raise self._wrong(field, item, "a list")
        return item

    def _dict(self, item: Any, field: str) -> dict[str, Any]:
        if not isinstance(item, dict):
            raise self._wrong(field, item, "an object")
        return item

    def _members(self, item: Any, field: str, names: Sequence[str]) -> dict[str, Any]:
        if not isinstance(item, dict) or item.keys() != set(names):
            found = sorted(item) if isinstance(item, dict) else item
            raise self._wrong(field, found, f"an object with {', '.join(names)}")
        return item

    def _wrong(self, field: str, value: object, expected: str) -> Exception:
        return wrong_value(self._path, field, value, expected)


def _inner(node: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node


def _items_without_names(paths: Iterable[Sequence[str | int]]) -> int:
    """The number of list items that have no name: an index asks for all items before its own."""
    root: dict[str | int, Any] = {}
    for path in paths:
        inner = root
        for key in path:
            inner = inner.setdefault(key, {})
    missing, todo = 0, [root]
    while todo:
        node = todo.pop()
        todo += node.values()
        indices = [key for key in node if isinstance(key, int)]
        missing += max(indices, default=-1) + 1 - len(indices)
    return missing


Box = tuple[tuple[int, ...], tuple[int, ...]]


def covers(shape: tuple[int, ...], boxes: Sequence[Box]) -> bool:
    """Whether boxes (offset, extents) inside a shape have each of its elements once.

    Raises OverflowError for more work than boxes of a grid, cut again and again, can make.
    """
    boxes = [box for box in boxes if math.prod(box[1])]
    if sum(math.prod(extents) for _, extents in boxes) != math.prod(shape):
        return False
    if not shape:
        return len(boxes) == 1
    # Boxes are cut apart wherever a plane goes through none of them: of a grid, a dimension at a time.
    left = MAX_LOOKS * len(boxes) * (len(shape) + 16)
    groups = [(boxes, 0)]
    while groups:
        group, first = groups.pop()
        if len(group) < 2:
            continue
        for d in (*range(first, len(shape)), *range(first)):
            left -= len(group)
            if len(parts := _cut_apart(group, d)) > 1:
                groups += [(part, d + 1) for part in parts]
                break
            if left < 0:
                break
        else:
            # No plane does: they overlap, or lie around each other as the blades of a wheel.
            left -= len(group) ** 2
            if left >= 0 and any(_overlap(box, other) for i, box in enumerate(group) for other in group[:i]):
                return False
        if left < 0:
            raise OverflowError(f"{len(boxes)} parts that lie in each other's way")
    return True


def _cut_apart(boxes: list[Box], d: int) -> list[list[Box]]:
    """The boxes between each two planes of one dimension that go through none of them."""
    parts: list[list[Box]] = []
    end = -1
    for box in sorted(boxes, key=lambda box: box[0][d]):
        if box[0][d] >= end:
            parts.append([])
        parts[-1].append(box)
        end = max(end, box[0][d] + box[1][d])
    return parts


def _overlap(a: Box, b: Box) -> bool:
    return all(max(x, y) < min(x + n, y + m) for x, n, y, m in zip(a[0], a[1], b[0], b[1], strict=True))
