"""Tensors of a brain's state on their way into a file and out of it: numpy's, and torch's where the state has them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._dtypes import BITS, carrier_dtype, numpy_dtype, packed_bytes
from ._elements import elements
from ._flat import Named
from ._tensor import CooArrays, Tensor
from .errors import UnsupportedError, make_error

if TYPE_CHECKING:
    from ._writer import Writer

Framework = Literal["numpy", "torch"]
#: Element types that a precision policy chooses among.
FLOATS = ("f64", "f32", "f16", "bf16")


def is_torch(value: Any) -> bool:
    """Whether it is a torch tensor; torch is not imported to tell."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def named_of(name: str, value: Any) -> Named:
    """An array or tensor under the name that it gets. Raises UnsupportedError for what no file holds."""
    if not is_torch(value):
        return Named(name, *elements(name, value))
    import torch

    from ._torch_tensors import named
    from ._torch_tree import PLAIN

    if type(value) not in PLAIN:
        raise make_error(
            UnsupportedError,
            f"{name}: cannot save the tensor subclass {type(value).__qualname__}",
            "unsupported_feature",
            tensor=name,
            value=type(value).__qualname__,
            expected="a torch.Tensor",
        )
    sparse = value.layout != torch.strided and not value.is_quantized
    return named(name, value.detach().to_dense() if sparse else value)


def sparse_of(tensor: Named) -> CooArrays | None:
    """The entries of a tensor of more than 100 elements, more than 90 % of them zeros; None for others.

    Zeros are those whose bits are, so that -0.0 stays what it is.
    """
    width = BITS[tensor.dtype] // 8
    size = int(np.prod(tensor.shape, dtype=np.int64))
    if size <= 100 or width not in (1, 2, 4, 8) or carrier_dtype(tensor.dtype) != _native(tensor.dtype):
        return None
    if max(tensor.shape) > np.iinfo(np.uint32).max:
        return None
    bits = np.asarray(tensor.data).view(f"<u{width}")
    entries = int(np.count_nonzero(bits))
    if entries * 10 >= size or entries * (4 * len(tensor.shape) + width) >= size * width:
        return None
    places = np.flatnonzero(bits)
    indices = np.stack(np.unravel_index(places, tensor.shape)).astype(np.uint32)
    return CooArrays(indices, bits[places].view(carrier_dtype(tensor.dtype)))


def _native(dtype: str) -> Any:
    try:
        return numpy_dtype(dtype)
    except UnsupportedError:
        return None


def write(writer: Writer, region: str, tensor: Named, role: str, entries: CooArrays | None) -> None:
    if entries is None:
        writer.add_bytes(tensor.name, tensor.dtype, tensor.shape, tensor.data, region=region, role=role)
    else:
        writer.add(tensor.name, entries, region=region, role=role, shape=tensor.shape)


def dense_bytes(tensor: Tensor) -> int:
    """Of all its elements, those included that a sparse one does not store."""
    return packed_bytes(tensor.dtype, tensor.size)


def reader(framework: Framework, device: Any = None) -> Callable[[Tensor, str | None], Any]:
    """What makes an array or a tensor, in memory of its own, of one in a file.

    It is called with the tensor, and the element type that it is to have or None for its own.
    Raises ImportError where torch is needed and is not there.
    """
    if framework == "numpy":
        return _numpy
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "the state has torch tensors, and torch is not installed; framework='numpy' loads arrays"
        ) from error

    def read(tensor: Tensor, dtype: str | None) -> Any:
        found = tensor.torch(device=None if device is None else torch.device(device))
        return found if dtype in (None, tensor.dtype) else found.to(_torch_float(dtype))

    return read


def _numpy(tensor: Tensor, dtype: str | None) -> Any:
    if tensor.dtype == "bf16" and dtype == "f32":
        # Its bits are the upper half of a float's, so ml_dtypes is not needed.
        upper = np.frombuffer(tensor.raw(), "<u2").astype("<u4") if tensor.encoding == "dense" else None
        if upper is not None:
            return (upper << 16).view("<f4").reshape(tensor.shape)
    found = tensor.dense(writable=True)
    return found if dtype in (None, tensor.dtype) else found.astype(numpy_dtype(str(dtype)))


def _torch_float(dtype: str | None) -> Any:
    import torch

    return {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[str(dtype)]


def is_restorable(dtype: object, tensor: Tensor) -> bool:
    """Whether a tensor may have had this element type before a policy of precisions."""
    return isinstance(dtype, str) and (dtype == tensor.dtype or (dtype in FLOATS and tensor.dtype in FLOATS))
