"""What a writer is given as an array, as the elements of a file."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import UnsupportedError, make_error
from .dtypes import array_bytes
from .tensor import Tensor


class Elements(NamedTuple):
    """A tensor's elements as a file has them: row-major, little-endian."""

    dtype: str
    """The format's name."""
    shape: tuple[int, ...]
    data: Any
    """A contiguous buffer: the memory that was given, if it is like that."""


def elements(name: str, value: Any) -> Elements:
    """The elements of an array of any kind: numpy's, of DLPack, with the buffer protocol, nested lists, or a
    tensor of an open file, which is stored as it is there, sparse ones with their zeros.

    Raises UnsupportedError that names the tensor and what it is.
    """
    if isinstance(value, Tensor):
        if value.encoding == "dense":
            return Elements(value.dtype, value.shape, value.raw())
        value = value.dense()
    if isinstance(value, bytes):  # as bytearray, and no text of numpy's
        value = np.frombuffer(value, np.uint8)
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        return _exchanged(name, value)
    if isinstance(value, np.ma.MaskedArray):
        raise make_error(
            UnsupportedError,
            f"{name}: a file cannot hold a masked array; expected its filled() and its mask",
            "unsupported_feature",
            tensor=name,
            value="numpy.ma.MaskedArray",
        )
    array = np.asarray(value)
    dtype, data = array_bytes(array, name)
    return Elements(dtype, array.shape, data)


def _exchanged(name: str, value: Any) -> Elements:
    from .dlpack import imported

    try:
        dtype, array = imported(name, value)
    except UnsupportedError as error:
        # What numpy can copy, as jax does from other devices.
        try:
            copy = np.asarray(value)
        except (TypeError, ValueError, RuntimeError):
            raise error from None
        if copy.dtype == object:
            raise
        return elements(name, copy)
    return Elements(dtype, array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
