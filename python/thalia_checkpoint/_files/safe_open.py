"""safe_open, as safetensors has it: of both formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._keywords import suggests
from .._missing import not_found
from .._support import OpenHere
from .._types import Access, Path
from ..errors import NotFoundError, UnsupportedError, UsageError, make_error
from . import slicing
from .dtypes import CODES
from .in_torch import torch_tensors
from .named import flat_metadata
from .open import open as open_file
from .tensor import Tensor

_FRAMEWORKS = {
    "np": "numpy", "numpy": "numpy", "pt": "torch", "torch": "torch", "pytorch": "torch",
    "flax": "jax", "jax": "jax",
}  # fmt: skip
#: How the bytes are read: in a mapping of the file, or read into memory.
_BACKENDS: dict[str, Access] = {"mmap": "mapped", "pread": "copied"}


class SliceError(UsageError, IndexError, TypeError):
    """An index of a slice that is neither ints, slices, None nor ...: what numpy raises, and what torch does."""


class Slice(OpenHere):
    """A tensor of which parts are read: slice[2:4].

    An array or tensor each, in memory of its own. Raises UsageError, which is an IndexError and a
    TypeError here, for an index of anything but ints, slices, None and ...; IndexError as numpy does.
    """

    def __init__(self, tensor: Tensor, framework: str, device: Any) -> None:
        self._tensor = tensor
        self._framework = framework
        self._device = device

    def __repr__(self) -> str:
        return f"<Slice of {self._tensor!r}>"

    def get_shape(self) -> list[int]:
        """Elements in each dimension."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """As safetensors spells it: "F32", "BF16", …"""
        return CODES.get(self._tensor.dtype, self._tensor.dtype.upper())

    def __getitem__(self, index: Any) -> Any:
        if slicing.plan(index, self._tensor.shape) is None:
            raise make_error(SliceError, f"{index!r} is no slice", "bad_argument", field="slice")
        if self._framework == "numpy":
            return self._tensor[index].copy()
        if self._framework == "jax":
            return _in_jax(self._tensor, self._tensor[index], self._device)
        return torch_tensors().slice_of(self._tensor, index, device=self._device)


def access_of(backend: str) -> Access:
    """The access of the backend "mmap" or "pread". Raises UsageError for another backend."""
    if backend not in _BACKENDS:
        raise make_error(
            UsageError,
            f"backend {backend!r}: expected mmap or pread",
            "bad_argument",
            field="backend",
            value=backend,
        )
    return _BACKENDS[backend]


def _in_jax(tensor: Tensor, array: npt.NDArray[Any], device: Any) -> Any:
    import jax
    import jax.numpy as jnp

    made = jnp.array(array)
    # Without jax_enable_x64 it has no elements of 64 bits. Other numbers are never handed out in silence.
    if made.dtype != array.dtype and not np.array_equal(np.asarray(made), array, equal_nan=True):
        raise make_error(
            UnsupportedError,
            f"{tensor.path}: jax would round {array.dtype} to {made.dtype}; set jax_enable_x64",
            "unsupported_dtype",
            tensor=tensor.name,
            value=str(array.dtype),
        )
    return made if isinstance(device, str) else jax.device_put(made, device)


@suggests
class safe_open(OpenHere):
    """Opens a .safetensors or .thalia file, or a model in several by its folder or index; tensors are
    read when they are asked for.

        with safe_open("model.thalia", framework="pt") as f:
            for name in f.keys():
                tensor = f.get_tensor(name)

    framework: "np", "pt", or "flax", which is "jax". device: where torch tensors go, or a jax.Device.
    backend: "mmap" maps the file, "pread" reads it into memory.

    Raises MissingFileError, a FileNotFoundError; FormatError; UnsupportedError for another
    framework, UsageError for another backend. After the `with` everything raises UsageError.
    """

    def __init__(self, filename: Path, framework: str, device: Any = "cpu", *, backend: str = "mmap") -> None:
        if framework not in _FRAMEWORKS:
            raise make_error(
                UnsupportedError,
                f"framework {framework!r}: expected np, pt or flax",
                "bad_argument",
                field="framework",
                value=framework,
            )
        self._framework = _FRAMEWORKS[framework]
        self._device = device
        self._file = open_file(filename, access=access_of(backend))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __repr__(self) -> str:
        return f"<safe_open, {self._framework}: {self._file!r}>"

    def _repr_html_(self) -> str:
        return self._file._repr_html_()

    def keys(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._file.tensors)

    def offset_keys(self) -> list[str]:
        """Names, in the order of the file."""
        return list(self._file.tensors)

    def metadata(self) -> dict[str, str] | None:
        """The texts that were saved with it; what else the metadata of a .thalia file has, as JSON. None
        if there is nothing."""
        return flat_metadata(self._file)

    def get_tensor(self, name: str) -> Any:
        """The tensor as an array, or as a torch tensor on the device, in memory of its own; the zeros of
        a sparse one included.

        Raises NotFoundError for a name that the file does not have; IntegrityError for damage;
        UnsupportedError for a dtype that the framework lacks.
        """
        tensor = self._find(name)
        if self._framework == "numpy":
            return tensor.dense(writable=True)
        if self._framework == "jax":
            return _in_jax(tensor, tensor.dense(), self._device)
        return tensor.torch(device=None if str(self._device) == "cpu" else self._device)

    def get_tensors(self) -> dict[str, Any]:
        """All of them by name, in the order of the file. Raises as get_tensor()."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> Slice:
        """The tensor, to read parts of it. Raises NotFoundError for a name that the file does not have."""
        return Slice(self._find(name), self._framework, self._device)

    def _find(self, name: str) -> Tensor:
        try:
            return self._file.tensors[name]
        except NotFoundError:
            names = self._file.tensors
            raise not_found(f"File does not contain tensor {name}", name, names, tensor=name) from None
