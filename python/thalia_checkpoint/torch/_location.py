"""Where tensors of a file go, as torch.load() is told by its map_location."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from ..errors import UsageError, make_error

MapLocation: TypeAlias = str | torch.device | Mapping[str, str] | Callable[[Any, str], Any] | None
#: Where tensors are that are read. A file does not say where they were.
_HERE = "cpu"


class NotPlacedError(Exception):
    """What moving a tensor raised, which is no fault of the file that it is of."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def placing(
    device: torch.device | str | None, map_location: MapLocation
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What moves a tensor that was read, and raises NotPlacedError; None where they stay on the CPU.

    Raises UsageError for both; RuntimeError for a device that torch does not know, as torch does.
    """
    if map_location is not None and device is not None:
        raise make_error(
            UsageError,
            f"map_location: got {map_location!r} and device {device!r}, expected one of them",
            "bad_argument",
            field="map_location",
        )
    where: Any = device if map_location is None else map_location
    if isinstance(where, Mapping):
        where = where.get(_HERE)
    elif callable(where):
        return _telling(lambda tensor: _placed(tensor, where))
    if where is None:
        return None
    if not isinstance(where, str | torch.device):
        raise make_error(
            UsageError,
            f"map_location: got {where!r}, expected a device, a dictionary of them or a function",
            "bad_argument",
            field="map_location",
            value=repr(where),
        )
    target = torch.device(where)
    return None if target == torch.device(_HERE) else _telling(lambda tensor: tensor.to(target))


def _telling(move: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    def moved(tensor: torch.Tensor) -> torch.Tensor:
        try:
            return move(tensor)
        except Exception as error:
            raise NotPlacedError(error) from None

    return moved


def _placed(tensor: torch.Tensor, place: Callable[[Any, str], Any]) -> torch.Tensor:
    """The tensor in the storage that a function gives for its own; it stays where that gives None."""
    if tensor.untyped_storage().nbytes() != tensor.nbytes:
        tensor = tensor.clone()  # of many in one memory
    storage = tensor.untyped_storage()
    found = place(storage, _HERE)
    if found is None or found is storage:
        return tensor
    found = found._untyped_storage if isinstance(found, torch.TypedStorage) else found
    made = torch.empty(0, dtype=tensor.dtype, device=found.device)
    return made.set_(found, tensor.storage_offset(), tensor.size(), tensor.stride())
