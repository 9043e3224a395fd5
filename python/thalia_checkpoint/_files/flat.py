"""Tensors without regions: what formats other than .thalia have, and what was loaded from any of them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Sequence, ValuesView
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import is_packed
from .file import Tensors
from .source import Buffer, bytes_of
from .tensor import Tensor


class FlatTensors(Tensors):
    """The tensors of a file without regions. Each is made when it is first asked for: a file may have very many."""

    def __init__(self, names: Iterable[str], make: Callable[[int], Tensor]) -> None:
        self._places = {name: i for i, name in enumerate(names)}
        self._make = make
        self._tensors: dict[str, Tensor] = {}
        self._are_all = False

    def __getitem__(self, name: str) -> Tensor:
        found = self._tensors.get(name)
        if found is None and name in self._places:
            found = self._tensors[name] = self._make(self._places[name])
        return super().__getitem__(name) if found is None else found

    def items(self) -> ItemsView[str, Tensor]:
        return self._all().items()

    def values(self) -> ValuesView[Tensor]:
        return self._all().values()

    def _all(self) -> dict[str, Tensor]:
        """In the order of the file, which is not that in which they were asked for."""
        if not self._are_all:
            self._tensors = {name: self[name] for name in self._places}
            self._are_all = True
        return self._tensors

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class FlatSource:
    """A tensor whose bytes lie together as they are."""

    __slots__ = ("_payload", "dtype", "name", "nbytes", "offset", "shape")
    region = ""
    role: str | None = None
    encoding = "dense"
    is_mapped = True
    of_delta = False
    wide_indices = False

    def __init__(self, offset: int, name: str, dtype: str, shape: tuple[int, ...], payload: Buffer) -> None:
        self.offset = offset
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.nbytes = len(payload)
        self._payload = payload

    @property
    def stored_bytes(self) -> int:
        return self.nbytes

    @property
    def disk_bytes(self) -> int:
        return self.nbytes

    @property
    def codecs(self) -> list[str]:
        return ["none"]

    @property
    def is_quantized(self) -> bool:
        return is_packed(self.dtype)  # parts are taken of the whole, as read_slice() cannot

    def payload(self) -> Buffer:
        return self._payload

    def _array(self) -> npt.NDArray[np.uint8]:
        return bytes_of(self.payload())

    def rows(self, begin: int, end: int) -> Buffer:
        row = self.nbytes // self.shape[0]
        return self._array()[begin * row : end * row].data

    def read(self, out: npt.NDArray[Any]) -> None:
        out.reshape(-1).view(np.uint8)[:] = self._array()

    def read_slice(self, ranges: list[tuple[int, int]], out: npt.NDArray[Any]) -> None:
        width = self.nbytes // max(int(np.prod(self.shape)), 1)
        whole = self._array().reshape(*self.shape, width)
        part = whole[tuple(slice(begin, end) for begin, end in ranges)]
        out.reshape(-1).view(np.uint8).reshape(part.shape)[...] = part

    def read_part(self, begin: int, out: npt.NDArray[np.uint8]) -> None:
        out[:] = self._array()[begin : begin + out.size]

    def sparse(self) -> Sequence[Buffer]:
        raise NotImplementedError
