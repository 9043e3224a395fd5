"""The folder of a Trainer's checkpoints: in which order they were saved, which of them are whole, and which stay.

Each is a folder checkpoint-N, of which trainer_state.json is the last file that a save writes and the
first that goes. checkpoints.json has their names in the order of their saves: by their numbers, those
that a training left behind when it began again at a smaller step would seem to be the latest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from . import _core
from ._files.open import open as open_file
from ._operations.verify import verify
from ._support import io_errors, sync
from ._types import Path
from .errors import ThaliaError

MARK = "trainer_state.json"
#: What the callback says in it of itself: how many processes there were, if each has saved its random numbers.
PROCESSES = "processes"
_ORDER = "checkpoints.json"
_ASIDE = ".replaced-"


def in_order(folder: FilePath) -> list[FilePath]:
    """The checkpoints that there are, the last that was saved last. Raises IoError."""
    with io_errors():
        if not folder.is_dir():
            return []
        numbers = {
            path.name: int(match[1])
            for path in folder.iterdir()
            if (match := re.fullmatch(r"checkpoint-(\d+)", path.name)) and path.is_dir()
        }
    known = [name for name in _listed(folder) if name in numbers]
    # Checkpoints that another program saved are ordered by their numbers: after the last one if they go on
    # from there, else before all.
    others = sorted((name for name in numbers if name not in known), key=numbers.__getitem__)
    last = numbers[known[-1]] if known else -1
    before = [name for name in others if numbers[name] <= last]
    return [folder / name for name in (*before, *known, *others[len(before) :])]


def last_checkpoint(folder: Path) -> str | None:
    """The checkpoint of a training that was saved last and is whole: a process that died while it saved
    leaves one that is not, which is passed over. None if there is none. Raises IoError.

    What ThaliaTrainer saved goes by the order of the saves, all else by the number in its name.
    """
    checkpoints = in_order(FilePath(folder))
    # Where a save was killed, what it was to take the place of may be all that there is.
    for checkpoint in (*reversed(checkpoints), *put_aside_in(FilePath(folder))):
        if is_whole(checkpoint) and all(verify(path).ok for path in checkpoint.glob("*.thalia")):
            return str(checkpoint)
    return None


def is_whole(checkpoint: FilePath) -> bool:
    """Whether all its files are there, by their headers and tables."""
    # Its last file is that of the Trainer's own state; a file with a part of its bytes does not open. With the callback
    # the other processes save theirs after it.
    try:
        processes = _processes(json.loads((checkpoint / MARK).read_text("utf-8")))
        names = os.listdir(checkpoint)
        if not all(random_name(process, processes) in names for process in range(processes)):
            return False
        indexes = [name for name in names if _core.is_model_index(name)]
        files = [name for name in names if name.endswith((".safetensors", ".thalia"))] + indexes
        for name in files:
            open_file(checkpoint / name).close()  # and all that an index names
        # Shards without an index are no model.
        if not indexes and any(map(_core.is_model_shard, files)):
            return False
    except (OSError, ValueError, ThaliaError):
        return False
    return bool(files)


def random_name(process: int, processes: int) -> str:
    """The file with the states of a process's random number generators."""
    return f"random-{process}.thalia" if processes > 1 else "random.thalia"


def _processes(state: Any) -> int:
    """How many there were, by the callback's state in that of a Trainer; 0 without it."""
    for name in ("stateful_callbacks", "ThaliaCallback", "attributes", PROCESSES):
        state = state.get(name) if isinstance(state, dict) else None
    return state if isinstance(state, int) else 0


def put_aside(checkpoint: FilePath) -> None:
    """Before a checkpoint of the same number is saved: the old one stays whole until then. Raises IoError."""
    with io_errors():
        if not checkpoint.is_dir():
            return
        aside = _aside(checkpoint)
        if (checkpoint / MARK).exists():
            _remove(aside)
            checkpoint.rename(aside)
        else:
            shutil.rmtree(checkpoint)  # what a save that died left


def put_aside_in(folder: FilePath) -> list[FilePath]:
    """Those that put_aside() left where a save died."""
    return sorted(folder.glob(f"{_ASIDE}checkpoint-*"))


def _aside(checkpoint: FilePath) -> FilePath:
    return checkpoint.with_name(f"{_ASIDE}{checkpoint.name}")


def saved(checkpoint: FilePath) -> None:
    """A checkpoint is complete: it is the last one from here on. Raises IoError."""
    folder = checkpoint.parent
    names = [path.name for path in in_order(folder) if path != checkpoint]
    _core.write_text(folder / _ORDER, json.dumps({"order": [*names, checkpoint.name]}))
    with io_errors():
        for old in put_aside_in(folder):
            _remove(old)


def keep(folder: FilePath, count: int, protected: set[FilePath], is_whole: Callable[[FilePath], bool]) -> None:
    """Removes what is older than the `count` last that are whole; the last one and `protected` stay.

    What is not whole is not counted. Raises IoError.
    """
    checkpoints = in_order(folder)
    stay = {checkpoint for checkpoint in (*checkpoints[-1:], *protected) if checkpoint in checkpoints}
    counted = sum(map(is_whole, stay))
    for checkpoint in reversed(checkpoints):
        if checkpoint in stay:
            continue
        if counted >= count:
            with io_errors():
                _remove(checkpoint)
        elif is_whole(checkpoint):
            counted += 1


def _listed(folder: FilePath) -> list[str]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        order = json.loads((folder / _ORDER).read_text("utf-8"))["order"]
        return list(dict.fromkeys(name for name in order if isinstance(name, str)))
    return []


def _remove(checkpoint: FilePath) -> None:
    """The mark first: a kill leaves nothing that seems to be whole."""
    with suppress(FileNotFoundError):
        (checkpoint / MARK).unlink()
        sync(os.fspath(checkpoint))
    with suppress(FileNotFoundError):
        shutil.rmtree(checkpoint)
