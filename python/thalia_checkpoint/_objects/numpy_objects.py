"""Whole objects with numpy arrays, into a file and out of it. No torch is needed.

docs/use/python.md, "What a tree looks like".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from .._files.any_file import parts, verify_ahead
from .._files.dtypes import constructor_names, numpy_dtype
from .._files.memory import claim
from .._files.named import committed_bytes
from .._files.open import open as open_file
from .._files.streams import Source, path_of, write_to
from .._files.writer import Writer
from .._keywords import suggests
from .._leaves import MEMBER, NO_LEAF, VERSION, checked, tree_rules, value_of
from .._support import collector_paused
from .._types import BinaryWriter, Path, is_writer
from ..errors import UnsupportedError, make_error
from .above import declare_in_torch
from .encoder import Encoder, Instead, nothing
from .text_arrays import of_numbers
from .tree import check_metadata, tree_of

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions

__all__ = ["declared_by", "load", "save"]

Made = TypeVar("Made", bound=Writer)


@overload
def save(
    obj: Any,
    path: None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    convert: Instead | None = None,
    **options: Unpack[SaveOptions],
) -> bytes: ...
@overload
def save(
    obj: Any,
    path: Path | BinaryWriter,
    *,
    metadata: Mapping[str, Any] | None = None,
    convert: Instead | None = None,
    **options: Unpack[SaveOptions],
) -> None: ...
@suggests
def save(
    obj: Any,
    path: Path | BinaryWriter | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    convert: Instead | None = None,
    **options: Unpack[SaveOptions],
) -> bytes | None:
    """Saves an object to a .thalia file, without pickle; load() gives it back.

    obj: arrays of numpy and others that have __dlpack__, numbers, texts, bytes, lists, tuples, sets and
        dictionaries of these, objects with state_dict(), which become their state, and those of a
        configuration: docs/use/python.md, "PyTorch", has a table. Where torch is imported, its tensors
        are taken too, as thalia_checkpoint.torch.save() takes them, whose load() gives them back.
    path: or a file object: open(), io.BytesIO, fsspec, which need not seek. The file is made in memory,
        and written at the object's position. What its write() raises goes through.
    metadata: members of the file's metadata, which JSON can hold: open(path).metadata has them, and
        load() does not.
    convert: asked for each object that is none of numbers, texts, bytes, arrays and plain containers,
        and has no state_dict(): gives what to save in its place, or None to leave it.
    options: those of SaveOptions.

    Returns the bytes of the file, without a path. Else the file is there whole, and on the disk, when this
    returns. Ctrl-C leaves the old one. A file object is neither flushed nor closed, and after an error it
    has a part.
    Raises UnsupportedError that names the place of anything else; IoError; UsageError for members of
    `metadata` that are not the caller's; TypeError for what JSON cannot hold there.
    """

    def declared(target: Path | int) -> Writer:
        if sys.modules.get("torch") is not None:
            writer: Writer = declare_in_torch()(obj, target, options, convert or nothing, metadata)
            return writer
        return declared_by(lambda: Writer(target, **options), obj, convert or nothing, metadata)

    if path is None:
        return committed_bytes(declared)
    if is_writer(path):
        write_to(path, declared)
    else:
        declared(cast(Path, path)).commit()
    return None


def declared_by(
    begin: Callable[[], Made], obj: Any, instead: Instead = nothing, metadata: Mapping[str, Any] | None = None
) -> Made:
    """The writer that begin() gives, with all that save() writes, before it is written."""
    own = check_metadata(metadata)
    encoder = Encoder("arrays, numbers, texts, containers of these, or objects with state_dict()", instead)
    with collector_paused():
        tree = encoder.node(obj, ())
    writer = begin()
    writer.metadata = {**own, MEMBER: {"version": VERSION, "tree": tree}}
    writer.add_tensors(encoder.arrays, encoder.roles)
    return writer


@suggests
def load(source: Source, *, mmap: bool = False) -> Any:
    """What save() was given. Nothing of torch is needed: tensors of torch come as arrays, also of a file
    that torch.save() or thalia_checkpoint.torch.save() wrote. A file that holds tensors alone, of any
    format, gives a dictionary of arrays; so does the folder or the index of a model in several files.

    source: a path, the bytes of any such file, or a file object: open(), io.BytesIO, fsspec. It is read
        from its position to its end. One of open() at the begin of a file is read in place.
    mmap: arrays lie in the mapping of the file where that is possible, read-only; bytes are verified first.

    Raises IoError, FormatError, IntegrityError; UnsupportedError for a dtype that needs ml_dtypes; what a
    file object's read() raises.
    """
    with path_of(source) as path, open_file(path, shared_memory=True) as file:
        if mmap:
            verify_ahead(file)
        tensors = {name: tensor for part in parts(file) for name, tensor in part.tensors.items()}
        if not mmap:
            claim(tensors.values())
        tree, _ = tree_of(file)
        if tree is None:
            return {name: tensor.dense() if mmap else tensor._claimed() for name, tensor in tensors.items()}
        by_name = {tensor.name: tensor for tensor in tensors.values()}
        decoder = _Decoder(lambda name: by_name[name].dense() if mmap else by_name[name]._claimed())
        root = checked(tree, os.fspath(path))
        with tree_rules():
            return value_of(root, decoder.special)


class _Decoder:
    """Makes arrays of the NODEs of one tree. read: gives what is stored under a name, and is called once for each."""

    def __init__(self, read: Callable[[str], npt.NDArray[Any]]) -> None:
        self._read = read
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def special(self, node: dict[str, Any]) -> Any:
        """As of value_of()."""
        for kind in ("tensor", "array", "scalar"):
            if kind in node:
                return self._array(kind, node)
        ((kind, inner),) = node.items()
        if kind == "size":
            return tuple(inner)
        # What only torch has is called by its name.
        return str(inner) if kind in ("dtype", "device") else NO_LEAF

    def _array(self, kind: str, node: dict[str, Any]) -> Any:
        name = node[kind]
        if kind != "tensor":
            array = self._read(name)
            array = of_numbers(array, node["dtype"]) if "dtype" in node else array
            return array[()] if kind == "scalar" else array
        if name not in self._arrays:
            self._arrays[name] = self._read(name)
        found = self._arrays[name]
        return _view(name, found, node["view"]) if "view" in node else found


def _view(name: str, stored: npt.NDArray[Any], view: Mapping[str, Any]) -> Any:
    shape, stride, offset = view["shape"], view["stride"], view["offset"]
    dtype = _dtype(view["dtype"])
    flat = stored.reshape(-1)
    if flat.dtype != dtype:
        flat = flat[: flat.nbytes // dtype.itemsize * dtype.itemsize // flat.itemsize].view(dtype)
    reach = offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if min([offset, *shape, *stride], default=0) < 0 or reach > flat.size:
        raise ValueError(f"{name!r}: a view of elements up to {reach}")
    strides = [s * dtype.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, strides, writeable=flat.flags.writeable)


def _dtype(name: Any) -> np.dtype[Any]:
    known = constructor_names().get(name)
    if known is None:
        raise make_error(
            UnsupportedError,
            f"numpy has no {name!r}, the dtype of a tensor of torch",
            "unsupported_dtype",
            value=str(name),
        )
    return numpy_dtype(known)
