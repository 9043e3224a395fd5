"""The folder of a distributed checkpoint, which is replaced as a whole.

A save of DIR/NAME goes to DIR/.NAME.saving and takes the place of DIR/NAME in its last step. Who
saves holds a lock on that folder, so that others can tell what a killed save has left.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from .._support import io_errors, sync
from ..errors import ExistsError, UsageError, make_error
from . import metadata

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class Lock:
    """Tells other processes that a folder is in use. Ends with the object, or the process."""

    def __init__(self, folder: str, *, wait: bool = False) -> None:
        """Raises BlockingIOError if it is in use, unless it waits; OSError if there are no such locks."""
        self._fd = -1
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            self.close()
            raise

    def is_at(self, path: str) -> bool:
        """Whether the folder still has that name: a lock is of a folder, and a name may get another one."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.lstat(path))
        except FileNotFoundError:
            return False

    def names(self) -> list[str]:
        """What the folder holds."""
        return os.listdir(self._fd)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # another process makes its own

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


#: The locks of the saves of this process, by folder.
_locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()


@contextmanager
def giving_up(folder: str) -> Iterator[None]:
    """Where a step of a save fails, other saves may clear it away, however long its lock is held.

    Who keeps the exception keeps the lock, and so does a process that dcp has for saves.
    """
    try:
        yield
    except BaseException:
        with suppress(OSError):
            open(os.path.join(saving(folder), metadata.FAILED_NAME), "x").close()
        raise


def saving(folder: str) -> str:
    """Where a save of the folder writes."""
    return _beside(folder, "saving")


def to_read(folder: str) -> str:
    """The folder, or what was there before, if a save was killed while it took its place."""
    if not os.path.lexists(folder) and os.path.isdir(old := _beside(folder, "old")):
        return old
    return folder


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
    folder = os.path.realpath(folder)
    parent, target = os.path.dirname(folder), saving(folder)
    with io_errors():
        _make_folders(parent)
        failed = _locks.get(target)  # of a save of this process
        if failed is not None:
            failed.close()
        for name in sorted(os.listdir(parent), reverse=True):  # .X.saving before .X.old
            _clear(os.path.join(parent, name), target)
        _check_replaceable(folder, replace)
        try:
            os.mkdir(target)
            lock = Lock(target, wait=True)  # for another save that just looks at it, in _clear()
        except (FileExistsError, FileNotFoundError):
            raise make_error(
                UsageError,
                f"{folder}: another process saves to it, or {target} is not a save's; expected neither",
                "wrong_state",
                path=folder,
            ) from None
        except OSError:
            if not os.path.isdir(target):
                raise
            return None
        _locks[target] = lock
        return lock


def commit(folder: str, *, durable: bool) -> None:
    """Puts what was saved in the folder's place. Raises IoError; the old or the new is there then."""
    folder = os.path.realpath(folder)
    parent = os.path.dirname(folder)
    new, old = saving(folder), _beside(folder, "old")
    with io_errors():
        if durable:
            sync(new)
        # What goes is locked before it has a name that others may clear away: else this save and another
        # one would remove it, the other one late, and of the next save's folder.
        going: Lock | None = None
        with suppress(OSError):
            going = Lock(folder)
        if not os.path.isdir(folder) or not os.listdir(folder):
            os.rename(new, folder)
        elif _exchange(new, folder):
            old = new
        else:
            # Not at once; what a kill between leaves, begin() and to_read() find.
            os.rename(folder, old)
            os.rename(new, folder)
        if durable:
            sync(parent)
        _remove(old)
        if going is not None:
            going.close()


def clear(folder: str, *, but: Collection[str] = ()) -> None:
    """Removes the files of a save from a folder, but for some and their .sha256. Raises OSError."""
    for name in os.listdir(folder):
        if _is_ours(name) and name.removesuffix(".sha256") not in but:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


def _make_folders(folder: str) -> None:
    """As os.makedirs(), and a power loss does not take them with what is saved in them."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folders(parent)
    with suppress(FileExistsError):
        os.mkdir(folder)
    sync(parent)


def _beside(folder: str, what: str) -> str:
    parent, name = os.path.split(os.path.realpath(folder))
    return os.path.join(parent, f".{name}.{what}")


def _is_ours(name: str) -> bool:
    """Whether a save writes a file of that name into its folder."""
    if name in (metadata.NAME, metadata.TORCH_NAME, metadata.RANKS_NAME, metadata.FAILED_NAME):
        return True
    if metadata.is_part_name(name) or (name.startswith(".") and name.endswith(".thalia-tmp")):
        return True
    return metadata.is_file_name(name.removesuffix(".sha256"))


def _check_replaceable(folder: str, replace: bool) -> None:
    if not os.path.lexists(folder):
        return
    names = os.listdir(folder) if os.path.isdir(folder) else [os.path.basename(folder)]
    foreign = [name for name in names if not _is_ours(name)]
    # A whole folder is replaced: nothing may go that is not a checkpoint's.
    if foreign or (names and not replace):
        why = f"it holds {min(foreign)!r}; expected a folder for the checkpoint alone" if foreign else "replace=False"
        raise make_error(ExistsError, f"{folder} is there already, and not replaced: {why}", "exists", path=folder)


def _clear(path: str, own: str) -> None:
    """Ends what a killed save did at this path, if that is what it is.

    own: the path that is to be free.
    """
    parent, name = os.path.split(path)
    if not name.startswith(".") or not name.endswith((".saving", ".old")) or os.path.islink(path):
        return
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return  # its save has just removed it; or it is no save's
    if not all(map(_is_ours, names)):
        return
    folder = os.path.join(parent, name[1:].removesuffix(".old"))
    if name.endswith(".old"):
        # A save that has not put the new one in place yet does that next.
        if os.path.lexists(saving(folder)):
            return
    elif path != own and not names:
        return  # perhaps made just now, and locked next
    lock = None
    try:
        lock = Lock(path)
    except BlockingIOError:
        if not os.path.exists(os.path.join(path, metadata.FAILED_NAME)):
            return
    except OSError:
        # Without locks nobody can tell whether a save to another folder is still going on.
        if path != own and name.endswith(".saving"):
            return
    try:
        if lock is not None:
            # Its name may have gone to another save's since it was listed.
            names = lock.names()
            if not lock.is_at(path) or (path != own and not names):
                return
        if name.endswith(".old") and metadata.NAME in names and not os.path.lexists(folder):
            os.rename(path, folder)
        else:
            _remove(path)
    finally:
        if lock is not None:
            lock.close()


def _remove(folder: str) -> None:
    """A folder with the files of a save; files of others in it stay, and it with them."""
    with suppress(FileNotFoundError):  # another save may do the same
        clear(folder)
    with suppress(OSError):
        os.rmdir(folder)


def _exchange(a: str, b: str) -> bool:
    """Two paths take each other's name at once. False where the file system cannot do that."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if call(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), a, None, b)
