"""Checkpoints of Lightning's Trainer as .thalia files.

    from lightning.pytorch import Trainer
    from thalia_checkpoint.lightning import ThaliaCheckpointIO

    trainer = Trainer(plugins=[ThaliaCheckpointIO()])
    trainer.fit(model, ckpt_path="run/last.ckpt")

It uses `lightning` if it is installed, else `pytorch_lightning`. No pickle is read or written.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import torch

from ._files.async_saver import AsyncSaver, SaveHandle
from ._files.writer import checked
from ._keywords import suggests
from ._support import io_errors, local_path, made_as
from ._types import Path
from .errors import FormatError, UsageError, make_error
from .torch import load
from .torch._objects import declare

if TYPE_CHECKING:
    from typing import Unpack

    from lightning.fabric.plugins import CheckpointIO

    from ._files.writer import SaveOptions
else:
    try:
        from lightning.fabric.plugins import CheckpointIO
    except ImportError:
        from lightning_fabric.plugins import CheckpointIO

__all__ = ["ThaliaAsyncCheckpointIO", "ThaliaCheckpointIO"]


# The base is Any to a checker of types that does not see lightning.
@suggests
class ThaliaCheckpointIO(CheckpointIO):  # type: ignore[misc, unused-ignore]
    """A plugin of Trainer and Fabric: all that they checkpoint is one .thalia file, under the name
    that they give it.

    options: those of SaveOptions. `Trainer.save_checkpoint(path, storage_options={…})` adds to them.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        self._options = checked(options)

    def __repr__(self) -> str:
        return made_as(self, **self._options)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Path, storage_options: Any = None) -> None:
        """Returns when the file is whole, and on the disk.

        Raises UnsupportedError that names the entry of the checkpoint that is no tensor, array,
        number, text or container of these; IoError.
        """
        self._declared(checkpoint, path, storage_options).commit()

    def load_checkpoint(self, path: Path, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """The checkpoint, with its tensors on the device `map_location`, by default the CPU.

        weights_only: has no effect, since no file runs code.
        Raises MissingFileError, a FileNotFoundError; IoError, FormatError, IntegrityError;
        UsageError for a map_location that is no device.
        """
        if map_location is not None and not isinstance(map_location, str | int | torch.device):
            raise make_error(
                UsageError,
                f"map_location: got {map_location!r}, expected a device or None",
                "bad_argument",
                field="map_location",
                value=repr(map_location),
                expected="a device or None",
            )
        checkpoint = load(local_path(path), device=None if map_location is None else torch.device(map_location))
        if not isinstance(checkpoint, dict):
            raise make_error(
                FormatError,
                f"{os.fspath(path)}: holds a {type(checkpoint).__name__}, expected the dictionary of a checkpoint",
                "bad_value",
                path=os.fspath(path),
            )
        return checkpoint

    def remove_checkpoint(self, path: Path) -> None:
        """Deletes the file, if it is there. Raises IoError."""
        with io_errors():
            for name in (local_path(path), f"{local_path(path)}.sha256"):
                with suppress(FileNotFoundError):
                    os.unlink(name)

    def _declared(self, checkpoint: dict[str, Any], path: Path, storage_options: Any) -> Any:
        if not isinstance(storage_options, Mapping | None):
            raise make_error(
                UsageError,
                f"storage_options: got {storage_options!r}, expected a dictionary of SaveOptions",
                "bad_argument",
                field="storage_options",
                value=repr(storage_options),
            )
        target = local_path(path)
        with io_errors():
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        return declare(checkpoint, target, {**self._options, **(storage_options or {})}, converts=False)


@suggests
class ThaliaAsyncCheckpointIO(ThaliaCheckpointIO):
    """Saves while the training goes on. The training waits for one copy of the checkpoint.

    A name counts as taken from the call on, also for ModelCheckpoint, which looks for the next free
    one. A checkpoint is removed once the saves that were begun before are whole and on the disk. What
    a save failed with is raised by the next call, or at the end of fit(); checkpoints that were to
    go after it stay.

    when_busy: what a save does while another one is unfinished: it waits for it, or it queues after
        it, with a copy of its own. Raises UsageError for anything else.
    options: those of SaveOptions.
    """

    def __init__(self, *, when_busy: Literal["wait", "queue"] = "queue", **options: Unpack[SaveOptions]) -> None:
        super().__init__(**options)
        if when_busy not in ("wait", "queue"):
            raise make_error(
                UsageError,
                f"when_busy: got {when_busy!r}, expected 'wait' or 'queue'",
                "bad_argument",
                field="when_busy",
                value=str(when_busy),
            )
        self._when_busy: Literal["wait", "queue"] = when_busy
        self._saver: AsyncSaver | None = None
        # In the order of the calls: a save, or a path to be removed with None.
        self._unfinished: deque[tuple[str, SaveHandle | None]] = deque()
        _answer_for_names_on_their_way()

    def __repr__(self) -> str:
        return made_as(self, when_busy=self._when_busy, **self._options)

    def __getstate__(self) -> dict[str, Any]:
        # For processes that a strategy spawns: what is on its way stays with this one.
        return {**self.__dict__, "_saver": None, "_unfinished": deque()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        _answer_for_names_on_their_way()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Path, storage_options: Any = None) -> None:
        """Returns after one copy of the checkpoint. Raises as ThaliaCheckpointIO, and what an
        earlier save failed with."""
        self._look_after()
        writer = self._declared(checkpoint, path, storage_options)
        name = os.path.abspath(local_path(path))
        if self._saver is None:
            self._saver = AsyncSaver(when_busy=self._when_busy)
        # The save takes the place of what was still to be removed there.
        self._unfinished = deque(entry for entry in self._unfinished if entry != (name, None))
        self._unfinished.append((name, self._saver.save(writer)))

    def load_checkpoint(self, path: Path, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """As ThaliaCheckpointIO, of a checkpoint that may still be on its way to the disk. Raises also
        what a save failed with."""
        self.wait()
        return super().load_checkpoint(path, map_location, weights_only)

    def remove_checkpoint(self, path: Path) -> None:
        """Deletes the file once the saves begun before are done. Raises what one of them failed with; IoError."""
        self._unfinished.append((os.path.abspath(local_path(path)), None))
        self._look_after()

    def wait(self) -> None:
        """Until no save is unfinished. Raises what one failed with."""
        self._look_after(all_of_them=True)

    def teardown(self) -> None:
        """Called by the Trainer at its end: as wait()."""
        self.wait()

    def _will_be_there(self, path: Path) -> bool | None:
        """Whether there is a file of that name once all is done; None where the disk says it already."""
        name = os.path.abspath(local_path(path))
        for each, handle in reversed(self._unfinished):
            if each == name:
                return handle is not None
        return None

    def _look_after(self, *, all_of_them: bool = False) -> None:
        while self._unfinished:
            path, handle = self._unfinished[0]
            if handle is None:
                super().remove_checkpoint(path)
            elif not handle.done and not all_of_them:
                return
            else:
                try:
                    handle.wait()
                except Exception:
                    # What was to go once this save was whole stays.
                    self._unfinished = deque(entry for entry in self._unfinished if entry[1] not in (None, handle))
                    raise
            self._unfinished.popleft()


def _answer_for_names_on_their_way() -> None:
    """Has ModelCheckpoint ask the plugin whether a name is taken, before it asks the disk.

    It knows no other way to find a name that is free: of saves that are on their way the disk has
    none, so that the next one would take the same and its place. All ranks have to ask in the same way,
    and only the first one saves: so each does this when it gets its plugin.
    """
    family = "lightning.pytorch" if CheckpointIO.__module__.startswith("lightning.") else "pytorch_lightning"
    with suppress(ImportError):  # with Fabric alone
        importlib.import_module(f"{family}.callbacks.model_checkpoint")
    for package in ("lightning.pytorch", "pytorch_lightning"):
        module = sys.modules.get(f"{package}.callbacks.model_checkpoint")
        if module is not None and not hasattr(module.ModelCheckpoint.file_exists, "asks_thalia"):
            module.ModelCheckpoint.file_exists = _asking(module.ModelCheckpoint.file_exists)


def _asking(ask_the_disk: Any) -> Any:
    @wraps(ask_the_disk)
    def file_exists(self: Any, filepath: Path, trainer: Any) -> Any:
        plugin = trainer.strategy.checkpoint_io
        if isinstance(plugin, ThaliaAsyncCheckpointIO):
            # The first rank saves, and all have to do the same.
            is_there = trainer.strategy.broadcast(plugin._will_be_there(filepath))
            if is_there is not None:
                return is_there
        return ask_the_disk(self, filepath, trainer)

    file_exists.asks_thalia = True  # type: ignore[attr-defined]
    return file_exists
