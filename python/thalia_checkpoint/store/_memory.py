"""Memory of a server's own, as a follower takes it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .._files.dtypes import dtype_name, is_packed
from ..errors import UsageError, make_error


class OwnMemory(NamedTuple):
    """Writable bytes, in place, and what tensor they are for."""

    dtype: str | None
    """The format's name; None, as the shape, for any tensor of so many bytes."""
    shape: tuple[int, ...] | None
    data: Any
    """A contiguous buffer."""

    @property
    def place(self) -> tuple[int, int]:
        """Where it lies: address and bytes."""
        size = memoryview(self.data).nbytes
        return int(np.frombuffer(self.data, np.uint8).ctypes.data) if size else 0, size


def own_memory(name: str, value: Any) -> OwnMemory:
    """The memory of an array of numpy, a tensor of torch, or anything with a writable buffer.

    An array of bytes, of shape (n,), is for any tensor of n bytes; so are other buffers.
    Raises UsageError for what is not writable, contiguous and in memory of the CPU; UnsupportedError for
    elements that no file has.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        found: tuple[str, tuple[int, ...], Any] = import_module("thalia_checkpoint.torch._follow").own_elements(
            name, value
        )
        return _of(*found)
    if isinstance(value, np.ndarray):
        if not (value.flags.c_contiguous and value.flags.writeable and value.dtype.isnative):
            raise unfit(name, _shown(value), "an array that is writable, contiguous and in the machine's byte order")
        dtype = dtype_name(value.dtype, name)
        if is_packed(dtype):
            raise unfit(name, f"an array of {value.dtype}", f"the bytes of {dtype}, which has several elements in one")
        return _of(dtype, value.shape, value.reshape(-1).view(np.uint8))
    try:
        view = memoryview(value)
    except TypeError:
        raise unfit(name, type(value).__qualname__, "an array, a tensor of torch or a writable buffer") from None
    if view.readonly or not view.c_contiguous:
        raise unfit(name, f"a {type(value).__qualname__} that is not", "a buffer that is writable and contiguous")
    return OwnMemory(None, None, value)


def grouped(memory: Mapping[str, OwnMemory]) -> list[tuple[list[str], OwnMemory]]:
    """The names of each memory: tensors that are the same memory have several."""
    found: dict[tuple[Any, ...], tuple[list[str], OwnMemory]] = {}
    for name, own in memory.items():
        begin, size = own.place
        key = (begin, size, own.dtype, own.shape) if size else (name,)
        found.setdefault(key, ([], own))[0].append(name)
    return list(found.values())


def unfit(name: str, value: str, expected: str) -> Exception:
    """What memory is refused with."""
    return make_error(
        UsageError,
        f"{name}: got {value}, expected {expected}",
        "bad_argument",
        field="memory",
        tensor=name,
        value=value,
        expected=expected,
    )


def _of(dtype: str, shape: tuple[int, ...], data: Any) -> OwnMemory:
    if dtype == "u8" and len(shape) == 1:
        return OwnMemory(None, None, data)
    return OwnMemory(dtype, tuple(shape), data)


def _shown(array: Any) -> str:
    if not array.flags.writeable:
        return "an array that is read-only"
    return "an array that is not contiguous" if array.dtype.isnative else f"an array of {array.dtype}"
