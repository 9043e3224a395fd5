"""Checkpoints of Lightning's Trainer.

    from thalia_checkpoint.lightning import ThaliaCheckpointIO

    trainer = Trainer(plugins=[ThaliaCheckpointIO()])
    trainer.fit(model, ckpt_path="last")

No pickle is read or written.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch

try:
    from lightning.pytorch.plugins.io import CheckpointIO
except ImportError:  # the same under its former name
    from pytorch_lightning.plugins.io import CheckpointIO  # type: ignore[assignment, unused-ignore]

from ._file import Path
from ._writer import AsyncSaver, SaveHandle
from .errors import UnsupportedError, make_error
from .torch import declare, load

__all__ = ["ThaliaCheckpointIO"]


class ThaliaCheckpointIO(CheckpointIO):  # type: ignore[misc, unused-ignore]
    """A plugin of the Trainer that keeps each checkpoint as a .thalia file, whatever its name ends in.

    asynchronous: the training stands still for one copy of the state; the rest happens on a thread
        beside it. What a save failed with is raised by the next call, or at the end of fit().
    options: those of thalia_checkpoint.SaveOptions.

    A file is there whole, or not at all. load() of thalia_checkpoint.torch reads it, too:
    model.load_state_dict(load("last.ckpt")["state_dict"]).
    """

    def __init__(self, *, asynchronous: bool = False, **options: Any) -> None:
        self._options = options
        self._saver = AsyncSaver() if asynchronous else None
        self._running: deque[SaveHandle] = deque()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Path, storage_options: Any = None) -> None:
        """Raises UnsupportedError that names the entry of what cannot be saved; IoError."""
        if storage_options is not None:
            raise make_error(
                UnsupportedError,
                "storage_options: a checkpoint is a local file; expected None",
                "unsupported_feature",
                field="storage_options",
            )
        while self._running and self._running[0].done:
            self._running.popleft().wait()
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        writer = declare(_plain(checkpoint), path, self._options)
        if self._saver is None:
            writer.commit()
        else:
            self._running.append(self._saver.save(writer))

    def load_checkpoint(self, path: Path, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """map_location: a device; a function or a mapping leaves tensors on the CPU, as they are read.

        Raises IoError, FormatError, IntegrityError.
        """
        self._wait()
        device = map_location if isinstance(map_location, str | torch.device) else None
        checkpoint: dict[str, Any] = load(path, device=device)
        return checkpoint

    def remove_checkpoint(self, path: Path) -> None:
        """Removes a file; none that is not there."""
        self._wait()
        if os.path.exists(path):
            os.remove(path)

    def teardown(self) -> None:
        """Until no save is unfinished. Raises what one failed with."""
        self._wait()

    def _wait(self) -> None:
        while self._running:
            self._running.popleft().wait()


def _plain(value: Any) -> Any:
    """Dictionaries of other kinds, such as that of hyperparameters, as plain ones."""
    if type(value) is dict:
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, Mapping) and type(value).__module__.startswith(("lightning", "pytorch_lightning")):
        return {key: _plain(member) for key, member in value.items()}
    return value
