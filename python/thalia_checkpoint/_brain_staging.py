"""A place for the files that a save makes on its way to the last one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path as FilePath

_PREFIX = ".thalia-"
#: A folder is made before it is locked. Whoever sweeps leaves the young ones alone.
_YOUNG_SECONDS = 60.0


class Staging:
    """A folder in the target's own, for the length of a `with` block. What processes that were killed
    left there goes with the next save: their folders are no longer locked."""

    def __init__(self, folder: FilePath) -> None:
        self._folder = folder

    def __enter__(self) -> Staging:
        self._sweep()
        self._own = FilePath(tempfile.mkdtemp(prefix=_PREFIX, dir=self._folder))
        self._lock = os.open(self._own, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # a file system without locks: nobody sweeps there either
        return self

    def __exit__(self, *error: object) -> None:
        _remove(self._own)
        os.close(self._lock)

    def inside(self, name: str) -> FilePath:
        return self._own / name

    @property
    def beside(self) -> FilePath:
        """A file in the target's folder, for what tells of others by their path from there."""
        return _beside(self._own)

    def _sweep(self) -> None:
        for left in self._folder.glob(f"{_PREFIX}*"):
            try:
                facts = left.lstat()
                if not left.is_dir() or facts.st_uid != os.geteuid() or time.time() - facts.st_mtime < _YOUNG_SECONDS:
                    continue
                lock = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)
            except OSError:
                pass  # somebody's
            finally:
                os.close(lock)


def _beside(own: FilePath) -> FilePath:
    return own.with_name(f"{own.name}.delta.thalia")


def _remove(own: FilePath) -> None:
    _beside(own).unlink(missing_ok=True)
    shutil.rmtree(own, ignore_errors=True)
