"""What formats give of a tensor: facts and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt


class Buffer(Protocol):
    """Read-only bytes with the buffer protocol; what looks at them keeps the file mapped."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...


class Source(Protocol):
    """What a format says of a tensor, and how to read its bytes."""

    @property
    def name(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def role(self) -> str | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def encoding(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def stored_bytes(self) -> int: ...
    @property
    def disk_bytes(self) -> int: ...  # of a delta, of all files of its chain
    @property
    def codecs(self) -> list[str]: ...
    @property
    def is_mapped(self) -> bool: ...
    @property
    def is_quantized(self) -> bool: ...
    @property
    def of_delta(self) -> bool: ...
    @property
    def wide_indices(self) -> bool: ...
    def payload(self) -> Buffer: ...
    def rows(self, begin: int, end: int, /) -> Buffer: ...
    def read(self, out: npt.NDArray[Any], /) -> None: ...
    def read_slice(self, ranges: list[tuple[int, int]], out: npt.NDArray[Any], /) -> None: ...
    def read_part(self, begin: int, out: npt.NDArray[np.uint8], /) -> None: ...
    def sparse(self) -> Sequence[Buffer]: ...


class CsrArrays(NamedTuple):
    """A compressed sparse row matrix; row r has the entries [row_pointers[r], row_pointers[r + 1])."""

    row_pointers: npt.NDArray[Any]
    """u32 or u64, one more than there are rows."""
    column_indices: npt.NDArray[Any]
    """u32 or u64, one an entry."""
    values: npt.NDArray[Any]
    """One an entry, in the tensor's element type."""


class CooArrays(NamedTuple):
    """A coordinate list, in row-major order."""

    indices: npt.NDArray[Any]
    """u32 or u64, of shape (rank, entries)."""
    values: npt.NDArray[Any]
    """One an entry, in the tensor's element type."""


def bytes_of(buffer: Buffer | npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The same bytes as an array, which keeps the buffer."""
    return np.frombuffer(cast(Any, buffer), dtype=np.uint8)
