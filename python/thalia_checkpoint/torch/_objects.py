"""Objects into a file and out of it: what `thalia_checkpoint.torch` and its checkpointer share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import torch

from .._distributed.folder import is_checkpoint
from .._files.any_file import parts, verify_ahead
from .._files.memory import claim
from .._files.open import open as open_file
from .._files.streams import Source, path_of
from .._files.tensor import Tensor
from .._files.writer import Writer
from .._keywords import suggests
from .._leaves import MEMBER, VERSION, checked
from .._objects.above import folder_loader
from .._objects.encoder import Instead, nothing
from .._objects.tree import BESIDE, check_metadata, tree_of
from .._types import Path
from ._decode import decode
from ._encode import Encoded, encode
from ._location import MapLocation, NotPlacedError, placing
from ._staging import Staging
from ._tensors import mapped_tensor, tensor_of

Made = TypeVar("Made", bound=Writer)


def one_of(function: str, ours: Any, theirs: Any) -> Any:
    """What is read or written, by the name that it has here or that torch gives it."""
    if theirs is not None and ours is not None:
        raise TypeError(f"{function}() got a file twice, by its place and as f=")
    return ours if theirs is None else theirs


def declare(
    obj: Any,
    path: Path | int,
    options: Mapping[str, Any],
    instead: Instead = nothing,
    metadata: Mapping[str, Any] | None = None,
    *,
    converts: bool = True,
) -> Writer:
    """A writer with all that save(obj, path) writes, before it is written.

    path: as Writer takes it. instead, converts: as of encode(). metadata: the caller's. Raises UsageError for members
    of these that are not his.
    """
    own = check_metadata(metadata)
    encoded = encode(obj, instead, converts=converts)
    return _filled(Writer(path, **options), encoded, own)


def declare_staged(
    obj: Any, begin: Callable[[], Made], staging: Staging | None, instead: Instead = nothing
) -> tuple[Made, bool]:
    """The same with the writer that begin() gives, and whether it has copies of the staging, if there is one."""
    encoded = encode(obj, instead, staging)
    return _filled(begin(), encoded, {}), encoded.staged


def _filled(writer: Made, encoded: Encoded, metadata: Mapping[str, Any]) -> Made:
    made: dict[str, Any] = {**metadata, MEMBER: {"version": VERSION, "tree": encoded.tree}}
    if encoded.attributes:
        made[BESIDE] = {"attributes": encoded.attributes}
    writer.metadata = made
    writer.add_tensors(encoded.tensors, encoded.roles)
    return writer


@overload
def load(
    source: Source,
    map_location: MapLocation = None,
    *,
    device: torch.device | str | None = None,
    mmap: bool | None = False,
    weights_only: bool | None = None,
    pickle_module: Any = None,
    encoding: str = "",
) -> Any: ...
@overload
def load(
    *,
    f: Source,
    map_location: MapLocation = None,
    device: torch.device | str | None = None,
    mmap: bool | None = False,
    weights_only: bool | None = None,
    pickle_module: Any = None,
    encoding: str = "",
) -> Any: ...
@suggests
def load(
    source: Any = None,
    map_location: MapLocation = None,
    *,
    f: Any = None,
    device: torch.device | str | None = None,
    mmap: bool | None = False,
    weights_only: bool | None = None,
    pickle_module: Any = None,
    encoding: str = "",
) -> Any:
    """What save() was given, with its tensors on `device` (by default the CPU), or what torch.save()
    was, of which no pickle is run. A file that holds tensors alone, of any format, gives a
    dictionary of them; so does the folder or the index of a model in several files. A folder of
    torch.distributed.checkpoint that ThaliaStorageWriter wrote gives the whole state, as the file that
    dcp.consolidate() makes of it. Quantized tensors of torch come as their codes, and sparse ones with
    their zeros.

    source: a path, the bytes of any such file, or a file object: open(), io.BytesIO, fsspec. It is read
        from its position to its end. One of open() at the begin of a file is read in place. `f` as well, as
        torch.load() calls it.
    map_location: in place of `device`, as torch.load() has it: a device; a dictionary, of which the
        device under "cpu" counts, as a file does not say where its tensors were; or a function of a
        storage and "cpu", which gives the storage to take, or None for that one.
    mmap: tensors lie in a private mapping of the file, where their bytes are verified; writing to one
        changes this process's copy alone. Compressed tensors are decoded.
    weights_only, pickle_module, encoding: taken as torch.load() takes them, and without an effect: no code of a
        file ever runs, and the texts of those that are read are UTF-8.

    Raises TypeError for no source, or two; IoError, FormatError, IntegrityError; UnsupportedError for a dtype that
    torch lacks; UsageError for a map_location that cannot be; what a file object's read() raises.
    """
    source = one_of("load", source, f)
    place = placing(device, map_location)
    read = mapped_tensor if mmap else tensor_of if place is not None else _claimed
    with path_of(source) as path:
        try:
            if is_checkpoint(path):
                return folder_loader()(os.fspath(path), place or (lambda tensor: tensor))
            return _loaded(
                path, read if place is None else lambda tensor: place(read(tensor)), bool(mmap), place is None
            )
        except NotPlacedError as failed:
            raise failed.error from None


def _claimed(tensor: Tensor) -> torch.Tensor:
    return tensor_of(tensor, claimed=True)


def _loaded(path: Path, read: Callable[[Tensor], torch.Tensor], mmap: bool, on_host: bool) -> Any:
    with open_file(path, access="writable" if mmap else "mapped", shared_memory=True) as file:
        if mmap:
            verify_ahead(file)
        elif on_host:
            claim(tensor for part in parts(file) for tensor in part.tensors.values())
        tree, attributes = tree_of(file)
        if tree is None:
            state: dict[str, torch.Tensor] = {}
            for part in parts(file):
                state |= {name: read(tensor) for name, tensor in part.tensors.items()}
            return state
        by_name = {tensor.name: tensor for tensor in file.tensors.values()}
        return decode(
            checked(tree, os.fspath(path)),
            lambda name: read(by_name[name]),
            lambda name: by_name[name].numpy(writable=True),
            attributes,
        )
