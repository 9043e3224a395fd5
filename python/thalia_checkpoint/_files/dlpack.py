"""Memory handed over by DLPack, in both directions, of element types that numpy lacks as well."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError, make_error
from .dtypes import BITS

#: Memory that the processor reads: its own, and that which CUDA or ROCm has pinned or manages.
_HOST = (1, 3, 11, 13)
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
_CODES = {
    "bool": 6, "bf16": 4, "f8_e4m3": 10, "f8_e4m3fnuz": 11, "f8_e5m2": 12, "f8_e5m2fnuz": 13, "f8_e8m0": 14,
}  # fmt: skip
_NAMES = {(code, BITS[name]): name for name, code in _CODES.items()} | {
    (code, bits): f"{kind}{bits}" for code, kind in _KINDS.items() for bits in (8, 16, 32, 64, 128)
}


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _managed(capsule: Any) -> _Versioned | None:
    name = b"dltensor_versioned"
    return _Versioned.from_address(_pointer(capsule, name) or 0) if _is_valid(capsule, name) else None


def _tensor(capsule: Any) -> _DLTensor:
    managed = _managed(capsule)
    if managed is None:
        return _DLTensor.from_address(_pointer(capsule, b"dltensor") or 0)
    if managed.major != 1:
        raise BufferError(f"DLPack {managed.major}.{managed.minor}; expected 1")
    tensor: _DLTensor = managed.tensor
    return tensor


class _Held:
    """Tells numpy of the memory. The capsule is not consumed: it frees it when it goes itself."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self._capsule = capsule
        self.__array_interface__ = interface


def as_stored(value: Any) -> Any:
    """A value whose memory holds its elements: DLPack and pointers know nothing of a torch tensor that is
    marked as the conjugate, or the negative, of what lies there. Any other value is itself."""
    for marked, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        is_marked = getattr(value, marked, None)
        if callable(is_marked) and is_marked() is True:
            value = getattr(value, resolve)()
    return value


def imported(name: str, value: Any) -> tuple[str, npt.NDArray[Any]]:
    """The format's dtype, and an array over the memory of what has __dlpack__; read-only.

    Elements of a type that numpy lacks are whole numbers of the same width. Raises UnsupportedError
    for memory that the processor does not read, for types that no file holds, and for what cannot be
    handed over without a copy, such as a torch tensor that needs a gradient.
    """
    try:
        value = as_stored(value)
        kind, number = (int(part) for part in value.__dlpack_device__())
        if kind not in _HOST:
            where = f"on the {_DEVICES.get(kind, f'DLPack type {kind}')} device {number}"
            raise _cannot(name, value, where, "memory of the CPU; copy it there first")
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than versions
            capsule = value.__dlpack__()
        tensor = _tensor(capsule)
    except (BufferError, RuntimeError, ValueError) as error:
        raise _cannot(name, value, f"that cannot be handed over: {error}", "elements in memory of the CPU") from error
    dtype = _NAMES.get((tensor.code, tensor.bits), "")
    if dtype not in BITS or tensor.lanes != 1:
        elements = f"with elements of DLPack type {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
        raise _cannot(name, value, elements, "numbers or bool")
    width = BITS[dtype] // 8
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(stride * width for stride in tensor.strides[: tensor.ndim]) if tensor.strides else None
    code = f"<{_KINDS[tensor.code]}{width}" if tensor.code in _KINDS else f"<u{width}"
    if math.prod(shape) == 0:
        return dtype, np.empty(shape, code)
    address = (tensor.data or 0) + tensor.byte_offset
    interface = {"version": 3, "shape": shape, "typestr": code, "data": (address, True), "strides": strides}
    return dtype, np.asarray(_Held(capsule, interface))


def exported(dtype: str, array: npt.NDArray[Any], **options: Any) -> Any:
    """The capsule of an array whose elements are of the format's `dtype`, or whole numbers of its
    width that stand for them. Raises BufferError as ndarray.__dlpack__() does."""
    capsule = array.__dlpack__(**options)
    tensor = _tensor(capsule)
    tensor.code = _CODES.get(dtype, tensor.code)
    return capsule


def _cannot(name: str, value: Any, what: str, expected: str) -> Exception:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return make_error(
        UnsupportedError,
        f"{name}: a {kind} {what}; expected {expected}",
        "unsupported_feature",
        tensor=name,
        value=what,
        expected=expected,
    )
