"""The bytes of safetensors files from addresses of tensors, and what bytes hold, as safetensors has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .. import _core
from .._keywords import suggests
from ..errors import UnsupportedError, UsageError, make_error
from .dtypes import CODES, constructor_names
from .named import Named, saved_bytes
from .open import open_one
from .streams import path_of_bytes

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["TensorSpec", "deserialize", "serialize", "serialize_file"]

#: Types of which one element of the framework is two of the file.
_PAIRS = {"float4_e2m1fn_x2": "f4_e2m1"}


class FlatOptions(TypedDict, total=False):
    """Those of SaveOptions that a .safetensors file has a use for."""

    durability: Literal["full", "data", "none"] | None
    replace: bool | None
    threads: int | None


class TensorSpec:
    """A tensor for serialize(), by the address of its elements, which have to stay there meanwhile.

    dtype: as numpy and torch call it: "float32", "bfloat16", "float8_e4m3fn", "float4_e2m1fn_x2".
    shape: in elements of that dtype. data_ptr, data_len: where they lie, and their bytes.

    Raises UnsupportedError for another dtype; UsageError for a number that cannot be.
    """

    __slots__ = ("_data_len", "_data_ptr", "_name", "_shape")

    def __init__(self, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> None:
        names = constructor_names()
        name = _PAIRS.get(dtype) or names.get(dtype)
        if name is None or name not in CODES:
            known = [known for known, its in names.items() if its in CODES]
            raise make_error(
                UnsupportedError,
                f"dtype: got {dtype!r}, expected one of {', '.join([*known, *_PAIRS])}",
                "unsupported_dtype",
                field="dtype",
                value=dtype,
            )
        extents = [int(extent) for extent in shape]
        for field, numbers in (("shape", extents), ("data_ptr", [data_ptr]), ("data_len", [data_len])):
            if any(not 0 <= number < 2**64 for number in numbers):
                text = f"{field}: got {numbers}, expected numbers from 0"
                raise make_error(UsageError, text, "bad_argument", field=field, value=str(numbers))
        if dtype in _PAIRS:
            if not extents:
                text = f"shape: got [], expected a dimension: elements of {dtype} are pairs"
                raise make_error(UsageError, text, "bad_argument", field="shape", value="[]")
            extents[-1] *= 2
        self._name = name
        self._shape = extents
        self._data_ptr = data_ptr
        self._data_len = data_len

    @property
    def dtype(self) -> str:
        """As a header has it: "F32", "BF16", "F8_E4M3"."""
        return CODES[self._name]

    @property
    def shape(self) -> list[int]:
        """In elements, as a header has it: of "float4_e2m1fn_x2" the last is doubled."""
        return list(self._shape)

    @property
    def data_ptr(self) -> int:
        """The address of the elements."""
        return self._data_ptr

    @property
    def data_len(self) -> int:
        """Bytes there."""
        return self._data_len

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.dtype!r}, shape={self._shape}, "
            f"data_ptr={self._data_ptr}, data_len={self._data_len})"
        )


@suggests
def serialize(tensor_dict: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file of these tensors. Raises UsageError for a length that is not that of
    dtype and shape; TypeError for what is no TensorSpec."""
    return saved_bytes(_named(tensor_dict), metadata, "safetensors")


@suggests
def serialize_file(
    tensor_dict: Mapping[str, TensorSpec],
    filename: Any,
    metadata: Mapping[str, str] | None = None,
    **options: Unpack[FlatOptions],
) -> None:
    """Writes these bytes to a file, which is there whole, and on the disk, when this returns.

    options: durability, replace and threads of SaveOptions. Raises IoError, and as serialize().
    """
    pairs = None if metadata is None else list(metadata.items())
    _core.save_safetensors(filename, [tuple(t) for t in _named(tensor_dict)], pairs, {**options})


def deserialize(bytes: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The tensors of a safetensors file, in the order of the file: [(name, {"shape": [2, 3], "dtype": "F32",
    "data": bytearray})]. Raises FormatError, UnsupportedError."""
    with path_of_bytes(bytes) as path, open_one(path) as file:
        return [
            (
                name,
                {
                    "shape": list(tensor.shape),
                    "dtype": CODES.get(tensor.dtype, tensor.dtype.upper()),
                    "data": bytearray(tensor.raw()),
                },
            )
            for name, tensor in file.tensors.items()
        ]


def _named(tensor_dict: Mapping[str, TensorSpec]) -> list[Named]:
    named = []
    for name, spec in tensor_dict.items():
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"{name}: got {type(spec).__name__}, expected a TensorSpec")
        data = _core.bytes_at(spec.data_ptr, spec.data_len, spec) if spec.data_len else b""
        named.append(Named(name, spec._name, tuple(spec._shape), data))
    return named
