"""Bytes as they are compressed: those of equal significance together, and what differs from others."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._keywords import suggests
from .._support import made_as


@suggests
class ByteGrouper:
    """Puts bytes of equal significance together, where they compress better: of little-endian numbers, byte 0 of
    each of them, then byte 1, and so on. Compressor does so itself.

    data: bytes, or anything else with contiguous memory, such as an array of numpy.
    width: the bytes of a number: 2, 4 or 8.
    Both raise UsageError for data that are no whole numbers.
    """

    def __repr__(self) -> str:
        return made_as(self)

    @staticmethod
    def group(data: Any, width: int = 2) -> bytes:
        """[a0, a1, b0, b1, …] as [a0, b0, …, a1, b1, …]."""
        return _core.group_bytes(data, width)

    @staticmethod
    def ungroup(data: Any, width: int = 2) -> bytes:
        """The inverse of group()."""
        return _core.ungroup_bytes(data, width)


@suggests
class DeltaEncoder:
    """Differences of bytes to those of a previous checkpoint: their exclusive or, which is zero where nothing changed.
    Compressor does so itself, tensor by tensor.

    Both raise UsageError where the two are not of the same length.
    """

    def __repr__(self) -> str:
        return made_as(self)

    def encode(self, current: Any, previous: Any = None) -> bytes:
        """What decode() makes `current` of; `current` itself where there is no previous one."""
        return bytes(current) if previous is None else _core.xor_bytes(current, previous)

    def decode(self, delta: Any, previous: Any) -> bytes:
        """What encode() was given."""
        return _core.xor_bytes(delta, previous)
