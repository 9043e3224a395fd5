"""The folder of a distributed checkpoint, which is replaced as a whole.

A save of DIR/NAME goes to DIR/.NAME.saving and takes the place of DIR/NAME in its last step. Who
saves holds a lock on that folder, so that others can tell what a killed save has left. The library
does it, as it does for all folders that it publishes; this module says which files are a save's.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from .. import _core
from . import metadata

Lock: TypeAlias = _core.FolderUse


@contextmanager
def giving_up(folder: str) -> Iterator[None]:
    """Where a step of a save fails, other saves may clear it away, however long its lock is held.

    Who keeps the exception keeps the lock, and so does a process that dcp has for saves.
    """
    try:
        yield
    except BaseException:
        _core.give_up_folder(folder, _CONTENT)
        raise


def saving(folder: str) -> str:
    """Where a save of the folder writes."""
    return os.fspath(_core.saving_folder(folder))


def to_read(folder: str) -> str:
    """The folder, or what was there before, if a save was killed while it took its place."""
    return os.fspath(_core.readable_folder(folder))


def is_checkpoint(path: object) -> bool:
    """Whether it is the folder of a checkpoint of ThaliaStorageWriter."""
    if not isinstance(path, str | os.PathLike):
        return False
    folder = to_read(os.fspath(path))
    if not os.path.isfile(os.path.join(folder, metadata.NAME)):
        return False
    # The folder of a model may have such a file of somebody else's.
    return not any(name.startswith("model.") for name in os.listdir(folder))


def begin(folder: str, *, replace: bool) -> Lock | None:
    """Makes an empty folder to save to, and clears away what killed saves left next to it.

    The lock is to be held until commit(); None where the file system has none. Raises ExistsError
    where the folder may not be replaced; UsageError while another process saves to it; IoError.
    """
    return _core.begin_folder(folder, replace, _CONTENT)


def commit(folder: str, *, durable: bool) -> None:
    """Puts what was saved in the folder's place. Raises IoError; the old or the new is there then."""
    _core.publish_folder(folder, durable, _CONTENT)


def clear(folder: str, *, but: Collection[str] = ()) -> None:
    """Removes the files of a save from a folder, but for some and their .sha256. Raises IoError."""
    _core.clear_folder(folder, _CONTENT, {*but, *(f"{name}.sha256" for name in but)})


def _is_ours(name: str) -> bool:
    """Whether a save writes a file of that name into its folder."""
    if name in (metadata.NAME, metadata.TORCH_NAME, metadata.RANKS_NAME, metadata.FAILED_NAME):
        return True
    if metadata.is_part_name(name) or (name.startswith(".") and name.endswith(".thalia-tmp")):
        return True
    return metadata.is_file_name(name.removesuffix(".sha256"))


_CONTENT = _core.FolderContent(_is_ours, metadata.NAME, metadata.FAILED_NAME)
