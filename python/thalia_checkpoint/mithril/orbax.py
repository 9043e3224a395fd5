"""Checkpoints of Orbax as compressed .thalia files.

    import orbax.checkpoint as ocp
    from thalia_checkpoint.mithril.orbax import MithrilCheckpointHandler

    handler = MithrilCheckpointHandler(compression_level=3)
    checkpointer = ocp.Checkpointer(handler)
    checkpointer.save(path, state)
    state = checkpointer.restore(path)

They are those of thalia_checkpoint.orbax, which reads them too.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import orbax.checkpoint as ocp

from .._keywords import suggests
from ..orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions

__all__ = ["MithrilCheckpointHandler", "MithrilRestore", "MithrilSave"]


@suggests
class MithrilCheckpointHandler(ThaliaCheckpointHandler):
    """A ThaliaCheckpointHandler that compresses: with compression_level, 1 to 22, by zstd, without it by plane_entropy,
    which is made for weights.

    options: those of SaveOptions. Raises UsageError for a value that cannot be.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        codec = "plane_entropy" if options.get("compression_level") is None else "zstd"
        wanted: dict[str, Any] = {"compression": codec, **options}
        super().__init__(**wanted)


# Orbax finds the handler of arguments by their class.
@suggests
@ocp.args.register_with_handler(MithrilCheckpointHandler, for_save=True)
@dataclasses.dataclass
class MithrilSave(ThaliaSave):
    """What to save, as ThaliaSave has it."""


@suggests
@ocp.args.register_with_handler(MithrilCheckpointHandler, for_restore=True)
@dataclasses.dataclass
class MithrilRestore(ThaliaRestore):
    """How to restore, as ThaliaRestore has it."""
