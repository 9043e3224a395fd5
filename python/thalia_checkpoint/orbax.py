"""Checkpoints of Orbax as .thalia files: pytrees of jax arrays.

    import orbax.checkpoint as ocp
    from thalia_checkpoint.orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

    with ocp.CheckpointManager(folder, item_handlers=ThaliaCheckpointHandler()) as manager:
        manager.save(step, args=ThaliaSave(state))
        state = manager.restore(step, args=ThaliaRestore(state))

Each item's folder has one file. No pickle is read or written.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import future

from ._files.open import open_one
from ._files.writer import Writer, checked
from ._jax import tree as _jax_tree
from ._jax.arrays import Stored, Wanted, is_key, mismatch, restored, shape_of
from ._jax.tree import PLACEHOLDER, Encoded, described, is_empty
from ._keywords import suggests
from ._leaves import MEMBER
from ._support import local_path, made_as
from ._types import Path
from .errors import UnsupportedError, UsageError, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = ["ItemMetadata", "ThaliaCheckpointHandler", "ThaliaRestore", "ThaliaSave"]

#: In the folder of an item.
NAME = "state.thalia"
#: The member under MEMBER that holds the custom metadata.
CUSTOM = "custom_metadata"


class ItemMetadata(dict[Any, Any]):
    """What item_metadata() returns for an item that is a dictionary: that one, with a jax.ShapeDtypeStruct
    in place of each array. A pytree, and a target for ThaliaRestore."""

    custom_metadata: dict[str, Any] | None = None
    """What ThaliaSave had of them; None if it had none."""


def _parts(item: ItemMetadata) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    return [(jax.tree_util.DictKey(key), value) for key, value in item.items()], tuple(item)


def _whole(keys: tuple[Any, ...], values: Iterable[Any]) -> Any:
    return dict(zip(keys, values, strict=True))  # of other leaves it tells nothing of a file


jax.tree_util.register_pytree_with_keys(ItemMetadata, _parts, _whole)


# The base is Any to a checker of types that does not see Orbax.
@suggests
class ThaliaCheckpointHandler(ocp.AsyncCheckpointHandler):  # type: ignore[misc, unused-ignore]
    """A handler of CheckpointManager, Checkpointer and AsyncCheckpointer: an item is one file.

    It holds arrays of jax, sharded ones too, random keys, arrays and scalars of numpy, numbers, texts,
    bytes and None, in dictionaries, lists, tuples and all containers that jax knows as pytrees. One
    process alone: where jax has several, saving and restoring raise UnsupportedError.

    options: those of SaveOptions.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        self._options = checked(options)

    def __repr__(self) -> str:
        return made_as(self, **self._options)

    def save(self, directory: Path, args: ThaliaSave) -> None:
        """Returns when the file is whole, and on the disk.

        Raises UnsupportedError that names what cannot be saved; TypeError for custom metadata that JSON
        cannot hold; IoError.
        """
        _alone()
        self._write(local_path(directory), _encoded(args, copy=False))

    async def async_save(self, directory: Path, args: ThaliaSave) -> list[Any]:
        """Returns after one copy of all arrays in memory of the CPU, with the future of the file: they
        may be changed, or donated, from then on.

        Raises UnsupportedError that names what cannot be saved; TypeError for custom metadata that JSON
        cannot hold. What writing raises the future does.
        """
        _alone()
        folder = local_path(directory)
        encoded = _encoded(args, copy=True)

        async def write() -> None:
            self._write(folder, encoded)

        # Orbax may still be making the folder.
        return [future.CommitFutureAwaitingContractedSignals(write(), name="thalia_save")]

    def restore(self, directory: Path, args: ThaliaRestore | None = None) -> Any:
        """What was saved, as ThaliaRestore asks for it.

        Raises MissingFileError, a FileNotFoundError; IoError, FormatError, IntegrityError; UsageError
        that names what the target has otherwise, NotFoundError what the file lacks;
        UnsupportedError for a dtype of 64 bits where jax has none.
        """
        _alone()
        target = _target(args or ThaliaRestore())
        path = os.path.join(local_path(directory), NAME)
        with open_one(path) as file:
            found = _decoded(file, path)
            if target is None:
                return _jax_tree.mapped(found, lambda array: restored(array, Wanted(), f"{path}: {array.tensor.name}"))
            return _jax_tree.fitted(found, target, f"{path}: item", _fit)

    def metadata(self, directory: Path) -> Any:
        """What was saved, with a jax.ShapeDtypeStruct in place of each array: of an item that is a
        dictionary ItemMetadata. No array is read. It is a target for ThaliaRestore, with which arrays of
        numpy come back as such, whatever their dtype.

        Raises MissingFileError, a FileNotFoundError; IoError, FormatError.
        """
        path = os.path.join(local_path(directory), NAME)
        with open_one(path) as file:
            shapes = _jax_tree.mapped(_decoded(file, path), shape_of)
            if type(shapes) is not dict:
                return shapes
            metadata = ItemMetadata(shapes)
            metadata.custom_metadata = file.metadata[MEMBER].get(CUSTOM)
            return metadata

    def _write(self, folder: str, encoded: Encoded) -> None:
        with Writer(os.path.join(folder, NAME), **self._options) as writer:
            writer.metadata = {MEMBER: encoded.member}
            writer.add_tensors(encoded.tensors)


@suggests
@ocp.args.register_with_handler(ThaliaCheckpointHandler, for_save=True)
@dataclasses.dataclass
class ThaliaSave(ocp.args.CheckpointArgs):  # type: ignore[misc, unused-ignore]
    """What to save."""

    item: Any
    """A pytree."""
    custom_metadata: Mapping[str, Any] | None = None
    """What JSON can hold, kept with the item: ItemMetadata has it."""


@suggests
@ocp.args.register_with_handler(ThaliaCheckpointHandler, for_restore=True)
@dataclasses.dataclass
class ThaliaRestore(ocp.args.CheckpointArgs):  # type: ignore[misc, unused-ignore]
    """How to restore. Without a target the whole item comes back: arrays of jax on the default device,
    those of numpy as such, and of containers that jax alone knows, as named tuples, dictionaries."""

    item: Any = None
    """The target: a pytree of the structure that was saved. An array of jax, or jax.ShapeDtypeStruct,
    gives the shape, which has to be the stored one, the dtype, and the sharding; one of numpy, and a
    jax.ShapeDtypeStruct without a sharding of what was saved as such, the shape and the dtype. Numbers,
    texts and bytes come back as stored. ocp.PLACEHOLDER stays, and what it stands for is not read, nor
    need it be there. None and what holds nothing, as optax.MaskedNode(), stay in place of one array or
    value. In place of a None that was saved no array is to be had."""
    restore_args: Any = None
    """A pytree of ocp.RestoreArgs and ocp.ArrayRestoreArgs, in place of the leaves of `item` that are
    to be read. What ocp.ArrayRestoreArgs leave open of shape and dtype comes from the array in `item`,
    unless strict=False. A global_shape has to be the stored one, whatever `strict` is. With a
    restore_type of int, float or np.ndarray a number comes back as that."""


def _alone() -> None:
    if (processes := jax.process_count()) > 1:
        raise make_error(
            UnsupportedError,
            f"jax.process_count(): got {processes}, expected 1: a file is written and read by one process",
            "unsupported_feature",
            field="process_count",
            value=str(processes),
            expected="1",
        )


def _encoded(args: ThaliaSave, *, copy: bool) -> Encoded:
    custom = None if args.custom_metadata is None else json.loads(json.dumps(dict(args.custom_metadata)))
    encoded = _jax_tree.encode(args.item, copy=copy)
    return encoded if custom is None else encoded._replace(member={**encoded.member, CUSTOM: custom})


def _decoded(file: Any, path: str) -> Any:
    tensors = {tensor.name: tensor for tensor in file.tensors.values()}
    return _jax_tree.decode(file.metadata.get(MEMBER), tensors, path)


def _target(args: ThaliaRestore) -> Any:
    if args.item is None or args.restore_args is None:
        return args.item if args.restore_args is None else args.restore_args
    # What is made of metadata leaf by leaf is a dictionary.
    item = dict(args.item) if isinstance(args.item, ItemMetadata) else args.item
    try:
        return jax.tree.map(_asked, item, args.restore_args, is_leaf=is_empty)
    except ValueError as error:
        raise make_error(
            UsageError,
            f"restore_args: got another structure than the item's: {error}",
            "bad_argument",
            field="restore_args",
        ) from error


def _asked(leaf: Any, restore_args: Any) -> Any:
    """What to restore in place of a leaf of the item. That is the leaf itself if it or `restore_args` is
    PLACEHOLDER, or if it is empty, else `restore_args`. An array gives the shape and the dtype that
    ocp.ArrayRestoreArgs leave open, unless strict=False."""
    if leaf is PLACEHOLDER or is_empty(leaf) or restore_args is PLACEHOLDER:
        return leaf
    if not isinstance(restore_args, ocp.ArrayRestoreArgs) or not restore_args.strict or isinstance(leaf, type):
        return restore_args
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return restore_args
    return dataclasses.replace(
        restore_args,
        global_shape=shape if restore_args.global_shape is None else restore_args.global_shape,
        dtype=dtype if restore_args.dtype is None else restore_args.dtype,
    )


def _wanted(asked: Any) -> Wanted | None:
    """None for what is no array."""
    if isinstance(asked, jax.Array):
        # One that is bound to no device stays so.
        return Wanted(jax.Array, asked.shape, asked.dtype, asked.sharding if asked.committed else None)
    if isinstance(asked, jax.ShapeDtypeStruct):
        # It stands for arrays of numpy too, which have dtypes that jax lacks, and no sharding.
        kind = None if asked.sharding is None else jax.Array
        return Wanted(kind, asked.shape, asked.dtype, asked.sharding)
    if isinstance(asked, np.ndarray | np.generic):
        return Wanted(np.generic if isinstance(asked, np.generic) else np.ndarray, asked.shape, asked.dtype)
    if isinstance(asked, ocp.ArrayRestoreArgs):
        shape = None if asked.global_shape is None else tuple(asked.global_shape)
        return Wanted(jax.Array, shape, asked.dtype, _sharding(asked))
    if isinstance(asked, ocp.RestoreArgs):
        # If no sharding is known, Orbax asks for arrays of numpy. Random keys cannot be arrays of numpy.
        is_array = asked.restore_type is np.ndarray and (asked.dtype is None or not is_key(asked))
        return Wanted(np.ndarray if is_array else None, None, asked.dtype)
    return None


def _sharding(asked: Any) -> Any:
    if asked.sharding is None and asked.mesh is not None:
        return jax.sharding.NamedSharding(asked.mesh, asked.mesh_axes)
    # Orbax's own description of one.
    made = getattr(asked.sharding, "to_jax_sharding", None)
    return asked.sharding if made is None else made()


def _fit(found: Any, asked: Any, where: str) -> Any:
    if isinstance(asked, ocp.RestoreArgs) and asked.restore_type is type(PLACEHOLDER):
        return PLACEHOLDER
    wanted = _wanted(asked)
    if isinstance(found, Stored):
        if wanted is None:
            raise mismatch(where, "value", described(found), described(asked))
        return restored(found, wanted, where)
    is_array = wanted is not None and not isinstance(asked, ocp.RestoreArgs)
    is_none = asked is None or type(asked) is ocp.RestoreArgs
    if is_array or isinstance(found, dict | list | tuple) or (found is None and not is_none):
        raise mismatch(where, "value", described(found), described(asked))
    if isinstance(asked, ocp.RestoreArgs) and type(found) in (int, float):
        return _number(found, asked)
    return found


def _number(found: Any, asked: ocp.RestoreArgs) -> Any:
    """As the type that is asked for, if that is one of numbers."""
    if asked.restore_type in (int, float):
        return asked.restore_type(found)
    return np.asarray(found, asked.dtype) if asked.restore_type is np.ndarray else found
