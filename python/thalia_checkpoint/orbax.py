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
import os
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import future

from . import _jax_tree
from ._file import Path
from ._file import open as open_file
from ._jax_arrays import Stored, Wanted, mismatch, restored, shape_of
from ._jax_tree import Encoded, described
from ._leaves import MEMBER
from ._operations import local_path
from ._writer import Writer
from .errors import UnsupportedError, UsageError, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from ._writer import SaveOptions

__all__ = ["ThaliaCheckpointHandler", "ThaliaRestore", "ThaliaSave"]

#: In the folder of an item.
NAME = "state.thalia"


# The base is Any to a checker of types that does not see Orbax.
class ThaliaCheckpointHandler(ocp.AsyncCheckpointHandler):  # type: ignore[misc, unused-ignore]
    """A handler of CheckpointManager, Checkpointer and AsyncCheckpointer: an item is one file.

    It holds arrays of jax, sharded ones too, random keys, arrays and scalars of numpy, numbers, texts,
    bytes and None, in dictionaries, lists, tuples and all containers that jax knows as pytrees. One
    process alone: where jax has several, saving and restoring raise UnsupportedError.

    options: those of SaveOptions.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        self._options: dict[str, Any] = dict(options)

    def save(self, directory: Path, args: ThaliaSave) -> None:
        """Returns when the file is whole, and on the disk.

        Raises UnsupportedError that names what cannot be saved; IoError.
        """
        _alone()
        self._write(local_path(directory), _jax_tree.encode(args.item, copy=False))

    async def async_save(self, directory: Path, args: ThaliaSave) -> list[Any]:
        """Returns after one copy of all arrays in memory of the CPU, with the future of the file: they
        may be changed, or donated, from then on.

        Raises UnsupportedError that names what cannot be saved. What writing raises the future does.
        """
        _alone()
        folder = local_path(directory)
        encoded = _jax_tree.encode(args.item, copy=True)

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
        with open_file(path) as file:
            found = _decoded(file, path)
            if target is None:
                return _jax_tree.mapped(found, lambda array: restored(array, Wanted(), f"{path}: {array.tensor.name}"))
            return _jax_tree.fitted(found, target, f"{path}: item", _fit)

    def metadata(self, directory: Path) -> Any:
        """What was saved, with a jax.ShapeDtypeStruct in place of each array. No array is read.

        Raises MissingFileError, a FileNotFoundError; IoError, FormatError.
        """
        path = os.path.join(local_path(directory), NAME)
        with open_file(path) as file:
            return _jax_tree.mapped(_decoded(file, path), shape_of)

    def _write(self, folder: str, encoded: Encoded) -> None:
        with Writer(os.path.join(folder, NAME), **self._options) as writer:
            writer.metadata = {MEMBER: encoded.member}
            writer.add_tensors(encoded.tensors)


@ocp.args.register_with_handler(ThaliaCheckpointHandler, for_save=True)
@dataclasses.dataclass
class ThaliaSave(ocp.args.CheckpointArgs):  # type: ignore[misc, unused-ignore]
    """What to save."""

    item: Any
    """A pytree."""


@ocp.args.register_with_handler(ThaliaCheckpointHandler, for_restore=True)
@dataclasses.dataclass
class ThaliaRestore(ocp.args.CheckpointArgs):  # type: ignore[misc, unused-ignore]
    """How to restore. Without a target the whole item comes back: arrays of jax on the default device,
    those of numpy as such, and of containers that jax alone knows, as named tuples, dictionaries."""

    item: Any = None
    """The target: a pytree of the structure that was saved. An array of jax, or jax.ShapeDtypeStruct,
    gives the shape, which has to be the stored one, the dtype, and the sharding; one of numpy the
    shape and the dtype. Numbers, texts and bytes come back as stored. ocp.PLACEHOLDER stays, and
    what it stands for is not read."""
    restore_args: Any = None
    """A pytree of ocp.RestoreArgs and ocp.ArrayRestoreArgs, in place of the leaves of `item`. A
    global_shape has to be the stored one, whatever `strict` is."""


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


def _decoded(file: Any, path: str) -> Any:
    tensors = {tensor.name: tensor for tensor in file.tensors.values()}
    return _jax_tree.decode(file.metadata.get(MEMBER), tensors, path)


def _target(args: ThaliaRestore) -> Any:
    if args.item is None or args.restore_args is None:
        return args.item if args.restore_args is None else args.restore_args
    try:
        return jax.tree.map(lambda _, leaf: leaf, args.item, args.restore_args)
    except ValueError as error:
        raise make_error(
            UsageError,
            f"restore_args: got another structure than the item's: {error}",
            "bad_argument",
            field="restore_args",
        ) from error


def _wanted(asked: Any) -> Wanted | None:
    """None for what is no array."""
    if isinstance(asked, jax.Array):
        # One that is bound to no device stays so.
        return Wanted(jax.Array, asked.shape, asked.dtype, asked.sharding if asked.committed else None)
    if isinstance(asked, jax.ShapeDtypeStruct):
        return Wanted(jax.Array, asked.shape, asked.dtype, asked.sharding)
    if isinstance(asked, np.ndarray | np.generic):
        return Wanted(np.generic if isinstance(asked, np.generic) else np.ndarray, asked.shape, asked.dtype)
    if isinstance(asked, ocp.ArrayRestoreArgs):
        shape = None if asked.global_shape is None else tuple(asked.global_shape)
        return Wanted(jax.Array, shape, asked.dtype, _sharding(asked))
    if isinstance(asked, ocp.RestoreArgs):
        return Wanted(np.ndarray if asked.restore_type is np.ndarray else None, None, asked.dtype)
    return None


def _sharding(asked: Any) -> Any:
    if asked.sharding is None and asked.mesh is not None:
        return jax.sharding.NamedSharding(asked.mesh, asked.mesh_axes)
    # Orbax's own description of one.
    made = getattr(asked.sharding, "to_jax_sharding", None)
    return asked.sharding if made is None else made()


def _fit(found: Any, asked: Any, where: str) -> Any:
    wanted = _wanted(asked)
    if isinstance(found, Stored):
        if wanted is None:
            raise mismatch(where, "value", described(found), described(asked))
        return restored(found, wanted, where)
    is_array = wanted is not None and not isinstance(asked, ocp.RestoreArgs)
    if is_array or isinstance(found, dict | list | tuple) or (found is None) != (asked is None):
        raise mismatch(where, "value", described(found), described(asked))
    return found
