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
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no dtype of texts or times")
    dtype = np.dtype(name)
    has_width = dtype.kind in "US"
    shape = numbers.shape[:-1] if has_width else numbers.shape
    wanted = np.dtype(_NUMBERS[dtype.kind])
    width = dtype.itemsize // wanted.itemsize
    if numbers.dtype != wanted or (has_width and numbers.shape[-1:] != (width,)):
        raise ValueError(f"{name!r} of an array {numbers.dtype}{list(numbers.shape)}")
    if dtype.kind == "U" and numbers.size and numbers.max() > _LAST_CHARACTER:
        raise ValueError(f"{name!r} of numbers that are no characters")
    return np.ascontiguousarray(numbers).reshape(-1).view(dtype).reshape(shape)
