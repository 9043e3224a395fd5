"""A distributed checkpoint as one file."""

from __future__ import annotations

import math
import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from .. import _core
from .._distributed import folder as _dcp_folder
from .._distributed import metadata as _dcp_metadata
from .._distributed import parse as _dcp_parse
from .._distributed.metadata import Document, StoredFile, StoredTensor
from .._files.dtypes import BITS
from .._files.named import Named, is_safetensors
from .._files.tensor import Tensor
from .._files.writer import Writer
from .._keywords import suggests
from .._leaves import MEMBER, VERSION
from .._support import io_errors, save_options
from .._types import Access, Path
from ..errors import FormatError, UsageError, make_error
from ..torch._tensors import TORCH_DTYPES, in_torch
from ._read import OpenFiles, read_part

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions

#: The bytes of a chunk that are decoded at a time.
PIECE_BYTES = 16 << 20
_ALIGNMENT = 64
_EPOCH = re.compile(r"-?(?:0|[1-9]\d{0,17})")


@suggests
def consolidate(
    folder: Path,
    out: Path,
    *,
    prefix: str = "",
    strip: str | Sequence[str] = (),
    verify: bool = True,
    access: Access = "mapped",
    **options: Unpack[SaveOptions],
) -> int:
    """Writes a checkpoint of ThaliaStorageWriter to one file, and returns its bytes.

    Memory stays bounded, however large the state: what is in parts or compressed goes through an
    unnamed file in the folder of `out`, which needs room for it meanwhile.

    out: NAME.safetensors takes the tensors alone, under their names. Any other name is a .thalia
        file, of which thalia_checkpoint.torch.load() makes the nested state that was saved.
    prefix: takes the names alone that begin so, without it: "model." the model alone. The state is then one
        dictionary, as that of a module. A .safetensors file of it is what Hugging Face's model.safetensors is.
    strip: what is taken out of the names, where parts of them begin so: "_orig_mod.", ("module.", …).
    verify, access: as ThaliaStorageReader has them.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises ExistsError; UsageError where no name begins with the prefix, and for names that become the same;
    MissingFileError, IoError, FormatError, IntegrityError; UnsupportedError for
    a dtype that the format lacks. On an error nothing is left at `out`.
    """
    place = _dcp_folder.to_read(os.fspath(folder))
    with io_errors():
        document = _dcp_parse.read(place)
    save = save_options(options, out, [os.path.join(place, file.name) for file in document.files])
    with OpenFiles(place, access, verify) as files, _Scratch(os.path.dirname(os.path.abspath(out))) as scratch:
        document = _chosen(document, prefix, [strip] if isinstance(strip, str) else strip, place)
        tensors = scratch.gather(document, files)
        if is_safetensors(out):
            # transformers reads no file that does not say so.
            return _core.save_safetensors(out, [tuple(tensor) for tensor in tensors], [("format", "pt")], save)
        writer = Writer(out, **save)
        for tensor in tensors:
            chunk = document.tensors[tensor.name].chunks[0]
            role = files.chunk(chunk, tensor.dtype).role
            region = _core.region_for_name(tensor.name)
            writer.add_bytes(tensor.name, tensor.dtype, tensor.shape, tensor.data, region=region, role=role)

        def add(name: str, tensor: Tensor) -> None:
            writer.add_bytes(name, tensor.dtype, tensor.shape, tensor.raw(), region="values")

        tree = nested(document, value_trees(document, files, add), os.path.join(place, _dcp_metadata.NAME))
        writer.metadata = {MEMBER: {"version": VERSION, "tree": tree}}
        return writer.commit().file_bytes


def _chosen(document: Document, prefix: str, strip: Sequence[str], place: str) -> Document:
    """What is left of it under a prefix, by the names and at the places that it has there."""
    if not prefix and not strip:
        return document
    parts = re.compile("|".join(rf"(?:^|(?<=\.)){re.escape(text)}" for text in strip if text) or r"(?!)")
    old_names = [name for name in (*document.tensors, *document.values) if name.startswith(prefix)]
    names: dict[str, str] = {}
    for old in old_names:
        new = parts.sub("", old.removeprefix(prefix))
        if not new or new.startswith("."):
            raise _cannot("prefix", prefix, f"expected the beginning of {old!r} up to a point", place)
        if new in names:
            raise _cannot("strip", new, f"as {names[new]!r} and {old!r} would both be called", place)
        names[new] = old
    if not names:
        begins = sorted({f"{name.split('.')[0]}." for name in (*document.tensors, *document.values) if "." in name})
        raise _cannot("prefix", prefix, f"which no name begins with; expected one of {', '.join(begins)}", place)
    paths = document.paths or {}
    return replace(
        document,
        tensors={new: document.tensors[old] for new, old in names.items() if old in document.tensors},
        values={new: document.values[old] for new, old in names.items() if old in document.values},
        paths={new: _below(paths.get(old, (old,)), prefix, parts) for new, old in names.items()},
    )


def _below(path: Sequence[str | int], prefix: str, parts: re.Pattern[str]) -> tuple[str | int, ...]:
    """A place without the prefix of its name, and without what is taken out of that."""
    left = list(path)
    while prefix and left:
        first = str(left[0])
        if not prefix.startswith(f"{first}."):
            left[0] = first.removeprefix(prefix)
            break
        prefix = prefix.removeprefix(f"{first}.")
        del left[0]
    return tuple(parts.sub("", key) if isinstance(key, str) else key for key in left)


def _cannot(field: str, value: str, what: str, place: str) -> Exception:
    return make_error(
        UsageError, f"{place}: {field}: got {value!r}, {what}", "bad_argument", path=place, field=field, value=value
    )


class _Scratch:
    """Memory that is backed by the disk, for as long as the context."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> _Scratch:
        with io_errors():
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix=".thalia-")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def gather(self, document: Document, files: OpenFiles) -> list[Named]:
        """All tensors, those that lie in a file as they are without a copy."""
        offsets: dict[str, int] = {}
        size = 0
        for name, tensor in document.tensors.items():
            only = files.chunk(tensor.chunks[0], tensor.dtype) if len(tensor.chunks) == 1 else None
            if nbytes(tensor) and (only is None or not only.is_mapped):
                offsets[name] = size
                size += nbytes(tensor) + -nbytes(tensor) % _ALIGNMENT
        memory = self._memory(size)
        found = []
        for name, tensor in document.tensors.items():
            data: Any = b""
            if name in offsets:
                begin = offsets[name]
                data = memory[begin : begin + nbytes(tensor)]
                fill(data, tensor, files)
            elif nbytes(tensor):
                data = files.chunk(tensor.chunks[0], tensor.dtype).raw()
            found.append(Named(name, tensor.dtype, tensor.shape, data))
        return found

    def _memory(self, size: int) -> memoryview:
        if size == 0:
            return memoryview(b"")
        with io_errors():
            # All of it now: a disk that is full later would end the process.
            os.posix_fallocate(self._file.fileno(), 0, size)
            return memoryview(mmap.mmap(self._file.fileno(), size))


def nbytes(tensor: StoredTensor) -> int:
    """What all its elements take."""
    return math.prod(tensor.shape) * BITS[tensor.dtype] // 8


def fill(data: memoryview, stored: StoredTensor, files: OpenFiles) -> None:
    """Reads a tensor of nbytes() from its chunks."""
    dtype = TORCH_DTYPES[stored.dtype]
    whole = torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(in_torch(stored.dtype, stored.shape))
    for chunk in stored.chunks:
        offset, shape = in_torch(stored.dtype, chunk.offset), in_torch(stored.dtype, chunk.shape)
        part = whole[tuple(slice(begin, begin + n) for begin, n in zip(offset, shape, strict=True))]
        source = files.chunk(chunk, stored.dtype)
        for begin, extents in _pieces((0,) * part.ndim, shape, PIECE_BYTES // dtype.itemsize):
            index = tuple(slice(first, first + n) for first, n in zip(begin, extents, strict=True))
            read_part(source, begin, part[index])


def _pieces(
    begin: tuple[int, ...], extents: tuple[int, ...], most: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """A box as boxes of at most so many elements."""
    if math.prod(extents) <= most:
        yield begin, extents
        return
    d = next(i for i, n in enumerate(extents) if n > 1)
    half = extents[d] // 2
    yield from _pieces(begin, (*extents[:d], half, *extents[d + 1 :]), most)
    after = (*begin[:d], begin[d] + half, *begin[d + 1 :])
    yield from _pieces(after, (*extents[:d], extents[d] - half, *extents[d + 1 :]), most)


def value_trees(document: Document, files: OpenFiles, add: Callable[[str, Tensor], object]) -> dict[str, Any]:
    """The trees of values, whose tensors get names that no other of the one file has. add: is told each of these."""
    names = set(document.tensors)
    new: dict[tuple[StoredFile, str, str], str] = {}
    trees = {}
    for name, value in document.values.items():

        def rename(own: str, file: StoredFile | None = value.file, region: str = value.region) -> str:
            if file is None or (file, region, own) in new:
                return own if file is None else new[file, region, own]
            unique, n = own, 1
            while unique in names:
                n += 1
                unique = f"{own}#{n}"
            tensor = files.file(file).region(region)[own]
            add(unique, tensor)
            names.add(unique)
            new[file, region, own] = unique
            return unique

        trees[name] = _renamed(value.tree, rename)
    return trees


def _renamed(node: Any, rename: Any) -> Any:
    if isinstance(node, list):
        return [_renamed(inner, rename) for inner in node]
    if not isinstance(node, dict):
        return node
    return {
        key: rename(inner)
        if key in ("tensor", "array", "scalar") and isinstance(inner, str)
        else _renamed(inner, rename)
        for key, inner in node.items()
    }


def nested(document: Document, values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The nested state: each tensor and value where it was."""
    root: dict[str | int, Any] = {}
    for name in (*document.tensors, *values):
        leaf = _Leaf({"tensor": name} if name in document.tensors else values[name])
        *before, last = (document.paths or {}).get(name, (name,))
        inner: Any = root
        for key in before:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or last in inner:
            raise make_error(
                FormatError,
                f"{path}: paths.{name}: got {[*before, last]}, expected a place of its own",
                "bad_value",
                path=path,
                field=f"paths.{name}",
            )
        inner[last] = leaf
    return _node(root)  # type: ignore[no-any-return]


class _Leaf:
    def __init__(self, node: Any) -> None:
        self.node = node
        self.is_dict = isinstance(node, dict)


class _Numbered(dict[Any, Any]):
    """A dictionary whose keys are numbers, and no list."""

    kind = "dict"


class _Counted(_Numbered):
    """The same of a Counter, as MultiStepLR has one."""

    kind = "counter"


def _node(inner: Any) -> Any:
    if isinstance(inner, _Leaf):
        return inner.node
    if inner and not isinstance(inner, _Numbered) and all(isinstance(key, int) for key in inner):
        # Items without a name were empty.
        return {"list": [_node(inner[i]) if i in inner else {"dict": []} for i in range(max(inner) + 1)]}
    # dcp makes texts of all keys. torch has numbers here, and knows nothing else.
    for name, numbers, kind in (("state", _parameters(inner), _Numbered), ("milestones", _epochs(inner), _Counted)):
        if numbers:
            inner[name] = kind((numbers[key], value) for key, value in inner[name].items())
    pairs = [[key, _node(value)] for key, value in inner.items()]
    return {inner.kind if isinstance(inner, _Numbered) else "dict": pairs}


def _parameters(inner: Mapping[str | int, Any]) -> dict[Any, int]:
    """The numbers of the parameters that the state of an optimizer describes, by their texts."""
    state, groups = inner.get("state"), inner.get("param_groups")
    if not isinstance(state, dict) or not isinstance(groups, dict):
        return {}
    found: dict[Any, int] = {}
    for group in groups.values():
        parameters = group.get("params") if isinstance(group, dict) else None
        numbers = parameters.node.get("list") if isinstance(parameters, _Leaf) and parameters.is_dict else None
        found |= {str(n): n for n in numbers if type(n) is int} if isinstance(numbers, list) else {}
    return found if all(key in found for key in state) else {}


def _epochs(inner: Mapping[str | int, Any]) -> dict[Any, int]:
    """The same of the epochs at which a MultiStepLR changes the rate."""
    epochs = inner.get("milestones")
    if not isinstance(epochs, dict) or "last_epoch" not in inner:
        return {}
    # A number of more than 18 digits is not that of an epoch.
    are_numbers = all(isinstance(key, str) and _EPOCH.fullmatch(key) for key in epochs)
    return {key: int(key) for key in epochs} if are_numbers else {}
