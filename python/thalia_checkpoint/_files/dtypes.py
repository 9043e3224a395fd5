"""Element types: the names of the format, and what numpy and ml_dtypes call them.

docs/format/format.md, "Element types".
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import UnsupportedError, make_error

#: Bits an element takes in a file.
BITS = _core.bits_of_dtypes()
_NUMPY = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2",
    "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
    "u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8",
    "bool": "?", "c64": "<c8", "c128": "<c16",
    "ternary": "i1", "binary": "i1",
}  # fmt: skip
_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
    "f8_e8m0": "float8_e8m0fnu",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f6_e2m3": "float6_e2m3fn",
    "f6_e3m2": "float6_e3m2fn",
    "f4_e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
}
#: What a header of safetensors calls the element types that it has.
CODES = _core.safetensors_dtypes()
_NAMES = {np.dtype(code): name for name, code in _NUMPY.items() if BITS[name] >= 8}
_ML_NAMES = {theirs: name for name, theirs in _ML_DTYPES.items()}

_found: dict[str, np.dtype[Any]] = {name: np.dtype(code) for name, code in _NUMPY.items()}


def constructor_names() -> dict[str, str]:
    """The format's names of element types of whole bytes, by those of numpy and ml_dtypes, as torch has them
    too: {"float32": "f32", "bfloat16": "bf16", …}."""
    named = {dtype.name: name for dtype, name in _NAMES.items()} | _ML_NAMES
    return {theirs: name for theirs, name in named.items() if BITS[name] >= 8}


def is_packed(dtype: str) -> bool:
    """Whether elements are no whole bytes: a file has them one after the other, as bits."""
    return BITS[dtype] < 8


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy dtype of an array with these elements; packed ones take a byte each there.

    Raises UnsupportedError where ml_dtypes is needed and not installed, or too old.
    """
    if dtype in _found:
        return _found[dtype]
    name = _ML_DTYPES[dtype]
    try:
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise make_error(
            UnsupportedError,
            f"numpy has no {dtype}; `pip install ml-dtypes` gives it ml_dtypes.{name}",
            "unsupported_dtype",
            value=dtype,
        ) from None
    _found[dtype] = found
    return found


def carrier_dtype(dtype: str) -> np.dtype[Any]:
    """A dtype of numpy's own of the same width: itself, or whole numbers that stand for it."""
    return _found[dtype] if dtype in _NUMPY else np.dtype(f"<u{BITS[dtype] // 8}")


def dtype_name(dtype: np.dtype[Any], tensor: str = "") -> str:
    """The format's name of a numpy dtype, in any byte order; `tensor` is whose it is.

    Raises UnsupportedError for one that no file can hold, such as object.
    """
    name = _NAMES.get(dtype.newbyteorder("<")) or _ML_NAMES.get(dtype.name)
    if name is None:
        raise make_error(
            UnsupportedError,
            f"{tensor}{': ' if tensor else ''}a file cannot hold elements of numpy's {dtype}; expected numbers or bool",
            "unsupported_dtype",
            tensor=tensor or None,
            value=str(dtype),
        )
    return name


#: Elements that are unpacked at once.
_UNPACKED = 1 << 20


def packed_bytes(dtype: str, elements: int) -> int:
    """Bytes that so many elements take in a file."""
    return (elements * BITS[dtype] + 7) // 8


def unpack(dtype: str, data: npt.NDArray[np.uint8], elements: int) -> npt.NDArray[Any]:
    """An array of shape (elements,) from packed elements, the lowest bit of a byte first."""
    bits = BITS[dtype]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    out = np.empty(elements, np.uint8)
    # In parts, as each bit takes a byte meanwhile. A part ends where a byte does.
    for begin in range(0, elements, _UNPACKED):
        count = min(_UNPACKED, elements - begin)
        part = data[begin * bits // 8 :]
        out[begin : begin + count] = (
            np.unpackbits(part, count=count * bits, bitorder="little").reshape(-1, bits) @ weights
        )
    if dtype == "binary":
        return out.view(np.int8) * np.int8(2) - np.int8(1)
    if dtype in ("i4", "i2", "ternary"):
        signed = out.view(np.int8)
        signed ^= 1 << (bits - 1)
        signed -= 1 << (bits - 1)
    return out.view(numpy_dtype(dtype))


def shaped(dtype: str, shape: tuple[int, ...], data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """An array over the bytes of all elements, as the file has them; of packed ones a copy, a byte each.

    Raises ValueError for another number of bytes.
    """
    if is_packed(dtype):
        count = math.prod(shape)
        if data.size != (count * BITS[dtype] + 7) // 8:
            raise ValueError(f"{data.size} bytes are not those of {count} elements of {dtype}")
        return unpack(dtype, data, count).reshape(shape)
    return data.view(numpy_dtype(dtype)).reshape(shape)


def pack(dtype: str, array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of a file for an array of any shape, whose elements take a byte each."""
    bits = BITS[dtype]
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    flags = (codes[:, None] >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(flags.reshape(-1), bitorder="little")


def array_bytes(array: npt.NDArray[Any], tensor: str = "") -> tuple[str, npt.NDArray[np.uint8]]:
    """The format's dtype of an array and its elements as bytes, row-major and little-endian.

    Without a copy where the array is like that already.
    """
    name = dtype_name(array.dtype, tensor)
    if is_packed(name):
        return name, pack(name, array)
    if not array.dtype.isnative and array.dtype.name not in _ML_NAMES:
        array = array.astype(array.dtype.newbyteorder("<"))
    return name, np.ascontiguousarray(array).reshape(-1).view(np.uint8)
