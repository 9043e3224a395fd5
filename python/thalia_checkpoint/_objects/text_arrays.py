"""Arrays whose elements no file has, texts and times, as arrays of numbers with the name of their dtype."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

#: What holds the elements, by numpy's kind.
_NUMBERS = {"U": "<u4", "S": "|u1", "M": "<i8", "m": "<i8"}
_DTYPE = re.compile(r"<U[1-9]\d*|\|S[1-9]\d*|<[Mm]8\[\w+(/\d+)?\]|<[Mm]8")
_LAST_CHARACTER = 0x10FFFF


def as_numbers(array: Any) -> tuple[Any, str] | None:
    """An array of texts, bytes or times as numbers, those of a text along a dimension of their own, and its
    dtype; None for any other."""
    kind = array.dtype.kind
    if isinstance(array, np.ma.MaskedArray):  # which no file holds
        return None
    if kind == "T":
        return as_numbers(array.astype(str))
    if kind not in _NUMBERS:
        return None
    dtype = np.dtype(f"{kind}1") if array.dtype.itemsize == 0 else array.dtype.newbyteorder("<")
    numbers = np.array(array, dtype=dtype, order="C").reshape(-1).view(_NUMBERS[kind])
    shape = array.shape if kind in "Mm" else (*array.shape, dtype.itemsize // np.dtype(_NUMBERS[kind]).itemsize)
    return numbers.reshape(shape), dtype.str


def of_numbers(numbers: Any, name: Any) -> Any:
    """The array that as_numbers() was given. Raises ValueError for numbers that are not of such a dtype."""
    dtype, shape = of_stored(numbers.shape, name)
    if numbers.dtype != np.dtype(_NUMBERS[dtype.kind]):
        raise ValueError(f"{name!r} of an array {numbers.dtype}{list(numbers.shape)}")
    if dtype.kind == "U" and numbers.size and numbers.max() > _LAST_CHARACTER:
        raise ValueError(f"{name!r} of numbers that are no characters")
    return np.ascontiguousarray(numbers).reshape(-1).view(dtype).reshape(shape)


def of_stored(shape: tuple[int, ...], name: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and the shape of the array whose numbers have that shape. Raises as of_numbers()."""
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no dtype of texts or times")
    dtype = np.dtype(name)
    if dtype.kind in "Mm":
        return dtype, shape
    width = dtype.itemsize // np.dtype(_NUMBERS[dtype.kind]).itemsize
    if shape[-1:] != (width,):
        raise ValueError(f"{name!r} of numbers of the shape {list(shape)}")
    return dtype, shape[:-1]
