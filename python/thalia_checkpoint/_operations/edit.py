"""Changes of a file that leave its tensors where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from .. import _core
from .._keywords import suggests

if TYPE_CHECKING:
    from .._types import Path

__all__ = ["edit_safetensors_metadata"]

#: How an edit was made: not at all, as the file has these texts; as a new file that shares the
#: tensors' blocks with the old one; in one write of a sector; as a new file.
SafetensorsEdit = Literal["unchanged", "cloned", "in_place", "rewritten"]


@suggests
def edit_safetensors_metadata(
    path: Path,
    changes: Mapping[str, str | None],
    *,
    in_place: bool = True,
    durability: Literal["full", "data", "none"] = "full",
) -> SafetensorsEdit:
    """Changes texts of a .safetensors file's metadata; all else of its header stays as it is written.

    Where the new header fits the room of the old one, tensors are not written again if the file
    system shares blocks between files (Btrfs, XFS), or if all bytes that differ lie in one sector.

    changes: a text under a key each; None removes the key.
    in_place: allows the write of one sector, which nearly all disks do whole or not at all. Open
        readers may see the new texts then. False: the old file or the new one, whatever happens.

    Raises IoError, FormatError, UnsupportedError; UsageError for a text that is not UTF-8.
    """
    done = _core.edit_safetensors_metadata(path, list(changes.items()), in_place, {"durability": durability})
    return cast(SafetensorsEdit, done)
