"""Memory for tensors of files, which is counted before it is taken."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .dtypes import packed_bytes

if TYPE_CHECKING:
    from .source import Source
    from .tensor import Tensor

_LARGE = 4 << 20  # bytes of an array for which huge pages pay
MOST = (1 << 64) - 1


def claim(tensors: Iterable[Tensor]) -> None:
    """Before memory is taken for these tensors, all of which are to be there at once.

    Raises FormatError (limit_exceeded) where what a file holds in fewer bytes is more than the limit on
    memory: docs/contribute/security.md, "Limits". What lies in the file as it is may be of any size.
    """
    own = stored = chain = 0
    for tensor in tensors:
        source = tensor._source
        nbytes, stored_bytes = source.nbytes, source.stored_bytes
        if source.encoding != "dense":
            nbytes = max(nbytes, packed_bytes(source.dtype, tensor.size))
        own += nbytes if nbytes > stored_bytes else 0
        if source.of_delta:
            chain = max(chain, source.disk_bytes)
        else:
            stored += stored_bytes
    if own:
        _core.check_allocation(min(own, MOST), stored + chain)


def claim_part(source: Source, nbytes: int) -> None:
    """The same of so many bytes of one of them."""
    if nbytes > source.stored_bytes:
        _core.check_allocation(min(nbytes, MOST), source.disk_bytes if source.of_delta else source.stored_bytes)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """np.empty(); a large array is in huge pages from its first byte on."""
    nbytes = math.prod(shape) * dtype.itemsize
    return np.ndarray(shape, dtype, memoryview(_core.memory(nbytes))) if nbytes >= _LARGE else np.empty(shape, dtype)
