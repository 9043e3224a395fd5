"""Arrays and torch tensors of a brain on their way into a state of the library, and out of one."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from .. import _core
from .._files.dtypes import packed_bytes, shaped
from .._files.elements import elements
from .._files.named import Named
from ..errors import UnsupportedError, make_error

Framework = Literal["numpy", "torch"]
#: What makes an array or a tensor of one that was loaded.
Read = Callable[[_core.LoadedTensor], Any]


def is_torch(value: Any) -> bool:
    """Whether it is a torch tensor; torch is not imported to tell."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def borrowed(name: str, value: Any) -> _core.BorrowedTensor:
    """An array or tensor as a state takes it. name: for errors. Raises UnsupportedError for what no file holds."""
    tensor = _named(name, value)
    return _core.BorrowedTensor(tensor.dtype, list(tensor.shape), tensor.data)


def _named(name: str, value: Any) -> Named:
    if not is_torch(value):
        return Named(name, *elements(name, value))
    import torch

    from ..torch._encode import PLAIN
    from ..torch._tensors import named

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


def dense_bytes(tensor: _core.LoadedTensor) -> int:
    """Bytes of all its elements, with those that a sparse tensor does not store."""
    return packed_bytes(tensor.dtype, math.prod(tensor.shape))


def tensors_in(node: Any) -> Iterator[_core.LoadedTensor]:
    """Those of a tree that was loaded."""
    if isinstance(node, _core.LoadedTensor):
        yield node
    elif isinstance(node, dict):
        for member in node.values():
            yield from tensors_in(member)
    elif isinstance(node, list):
        for item in node:
            yield from tensors_in(item)


def reader(framework: Framework, device: Any = None) -> Read:
    """What makes an array or a tensor, in memory of its own.

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

    from ..torch._tensors import over_bytes

    def read(tensor: _core.LoadedTensor) -> Any:
        # What is asked of a tensor of a file.
        facts: Any = SimpleNamespace(
            path="a state's", dtype=tensor.dtype, shape=tensor.shape, size=math.prod(tensor.shape), encoding="dense"
        )
        found = over_bytes(facts, tensor.take())
        return found if device is None else found.to(torch.device(device))

    return read


def _numpy(tensor: _core.LoadedTensor) -> Any:
    dtype, shape = tensor.dtype, tensor.shape
    return shaped(dtype, shape, np.frombuffer(memoryview(tensor.take()), np.uint8))
