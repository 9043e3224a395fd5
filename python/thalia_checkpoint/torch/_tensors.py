"""Tensors of files as tensors of torch, and the other way round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .. import _core
from .._files import slicing as _slicing
from .._files.dlpack import as_stored
from .._files.dtypes import carrier_dtype, is_packed, unpack
from .._files.file import File
from .._files.memory import claim
from .._files.named import Named
from .._files.tensor import Tensor
from ..errors import UnsupportedError, make_error

_TORCH = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "bool": "bool", "c64": "complex64", "c128": "complex128",
    "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e8m0": "float8_e8m0fnu",
    "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, theirs) for name, theirs in _TORCH.items() if hasattr(torch, theirs)
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: Two elements of f4_e2m1 in a byte, of which torch has the pairs; None if it has none. A tensor of
#: these has half the last extent that the file's has.
FLOAT4: torch.dtype | None = getattr(torch, "float4_e2m1fn_x2", None)
#: The dtypes of all elements that torch has in memory as a file has them.
TORCH_DTYPES: dict[str, torch.dtype] = DTYPES if FLOAT4 is None else {**DTYPES, "f4_e2m1": FLOAT4}
_STRIDED = torch.strided
_NUMPY = {dtype for name, dtype in DTYPES.items() if name != "bf16" and not name.startswith("f8_")}
#: Packed integers come out a byte each.
_UNPACKED = {
    "i4": torch.int8, "u4": torch.uint8, "i2": torch.int8, "u2": torch.uint8,
    "ternary": torch.int8, "binary": torch.int8,
}  # fmt: skip


def tensor_of(tensor: Tensor, *, device: torch.device | str | None = None, claimed: bool = False) -> torch.Tensor:
    """A tensor of a file in memory of its own. Raises as Tensor.torch().

    claimed: its memory was, together with that of others.
    """
    source = tensor._source
    dtype = DTYPES.get(source.dtype)
    if dtype is None or source.encoding != "dense":
        return _restored(tensor).to(device)
    if not claimed:
        claim([tensor])
    out = torch.empty(source.shape, dtype=dtype)
    if out.numel() != 0:
        source.read(bytes_of(out))
    return out if device is None else out.to(device)


def _restored(tensor: Tensor) -> torch.Tensor:
    """A tensor with packed elements, or a sparse one, in memory of its own."""
    dtype = element_dtype(tensor)
    if dtype is None:
        raise _no_dtype(tensor)
    data = tensor.raw() if is_packed(tensor.dtype) else tensor.dense().reshape(-1).view(np.uint8)
    return _over(tensor, dtype, data)


def streamed(
    file: File, tensors: Sequence[Tensor], into: Sequence[torch.Tensor | None], memory_bytes: int | None
) -> Iterator[tuple[int, torch.Tensor]]:
    """Tensors of a file on the CPU, by their places among these, the fastest to read first.

    into: for each tensor, and none of them twice, one that fits it and is read into and handed out,
        or None. Before it is handed out, and after an error, it holds bytes that nothing has checked.

    Other memory is the stream's: drop each, or count it to what is in memory. Raises as Tensor.torch().
    """
    in_stream = [i for i, tensor in enumerate(tensors) if tensor.encoding == "dense"]
    if in_stream:
        places = [None if (out := into[i]) is None else bytes_of(out.detach()) for i in in_stream]
        stream = file.open_stream([tensors[i] for i in in_stream], "file", 0, memory_bytes, places)
        while (arrived := stream.next()) is not None:
            place, data = in_stream[arrived[0]], arrived[1]
            own, dtype = into[place], element_dtype(tensors[place])
            if dtype is None:
                raise _no_dtype(tensors[place])
            yield place, _over(tensors[place], dtype, data) if data is not None or own is None else own
            del arrived, data  # before the next one is waited for
    for place in sorted(set(range(len(tensors))) - set(in_stream)):
        yield place, tensor_of(tensors[place])


def fits(target: torch.Tensor, tensor: Tensor) -> bool:
    """Whether the bytes of a tensor of a file, of the same shape, can go into a tensor as they are."""
    return (
        type(target.detach()) is torch.Tensor  # a subclass may keep its elements elsewhere
        and target.device.type == "cpu"
        and target.layout == torch.strided
        and target.is_contiguous()
        and target.numel() != 0
        and not target.is_conj()
        and not target.is_neg()
        and tensor.encoding == "dense"
        and tensor_dtype(tensor) == target.dtype
    )


def _over(tensor: Tensor, dtype: torch.dtype, data: Any) -> torch.Tensor:
    """A tensor over the bytes of all elements, as the file has them; of packed ones, a copy."""
    shape = torch_shape(tensor)
    if dtype == FLOAT4:
        pairs = torch.empty(shape, dtype=torch.uint8)
        pairs.numpy().reshape(-1)[:] = np.frombuffer(data, np.uint8)
        return pairs.view(dtype)
    if tensor.size == 0:
        return torch.empty(shape, dtype=dtype)
    if not is_packed(tensor.dtype):
        return torch.frombuffer(data, dtype=dtype).reshape(tensor.shape)
    codes = unpack(tensor.dtype, np.frombuffer(data, np.uint8), tensor.size)
    return torch.from_numpy(codes.view(np.dtype(str(dtype).removeprefix("torch.")))).reshape(tensor.shape)


def over_bytes(tensor: Tensor, data: Any) -> torch.Tensor:
    """A tensor over the bytes of all elements, which are writable and its own. Raises as Tensor.torch()."""
    dtype = element_dtype(tensor)
    if dtype is None:
        raise _no_dtype(tensor)
    return _over(tensor, dtype, data)


def tensor_from(
    name: str, dtype: str, shape: tuple[int, ...], data: Any, *, device: torch.device | str | None = None
) -> torch.Tensor:
    """A tensor in writable bytes, which it keeps. Raises UnsupportedError for a dtype that torch lacks."""
    if dtype not in DTYPES:
        raise _lacks(name, dtype)
    if len(data) == 0:
        return torch.empty(shape, dtype=DTYPES[dtype], device=device)
    return torch.frombuffer(data, dtype=DTYPES[dtype]).reshape(shape).to(device)


def _no_dtype(tensor: Tensor) -> Exception:
    return _lacks(tensor.path, tensor.dtype, "; numpy() and raw() give the elements")


def _lacks(name: str, dtype: str, instead: str = "") -> Exception:
    return make_error(
        UnsupportedError,
        f"{name}: torch has no {dtype}{instead}",
        "unsupported_dtype",
        tensor=name,
        value=dtype,
    )


def bytes_of(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """The bytes of a contiguous tensor on the CPU, in place, as an array of any type and shape."""
    # Elements of types that numpy lacks are viewed as bytes, at the cost of two more calls. One element is
    # contiguous with any stride, which a view as bytes does not take.
    plain = tensor if tensor.dtype in _NUMPY else tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
    array: npt.NDArray[Any] = plain.numpy()
    return array


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_cpu else tensor.cpu()


def named(name: str, tensor: torch.Tensor, host: Callable[[torch.Tensor], torch.Tensor] = on_host) -> Named:
    """A dense tensor of any device and layout on its way into a file, pairs of f4_e2m1 as the file has
    them: twice as many in the last dimension. Raises UnsupportedError.

    host: brings it to the CPU.
    """
    dtype, shape = stored_as(name, tensor)
    # Detached: nobody who has the tensor can give this one other memory.
    elements = tensor.detach()
    dense = as_stored(host(elements.view(torch.uint8) if dtype == "f4_e2m1" else elements)).contiguous()
    # numpy() takes several times as long.
    return Named(name, dtype, shape, _core.bytes_at(dense.data_ptr(), dense.nbytes, dense))


def stored_as(name: str, tensor: torch.Tensor) -> tuple[str, tuple[int, ...]]:
    """The dtype and the shape that a file has of it. Raises as named()."""
    if (what := not_dense(tensor)) is not None:
        raise make_error(
            UnsupportedError,
            f"{name}: got a tensor {what}, expected a dense one with elements{_instead_of(tensor)}",
            "unsupported_feature",
            tensor=name,
            value=what,
        )
    if FLOAT4 is not None and tensor.dtype == FLOAT4 and tensor.dim() != 0:
        return "f4_e2m1", in_elements("f4_e2m1", tensor.shape)
    if tensor.dtype not in NAMES:
        raise make_error(
            UnsupportedError,
            f"{name}: elements of {tensor.dtype} have no place here"
            + ("; expected one dimension or more" if tensor.dtype == FLOAT4 else ""),
            "unsupported_dtype",
            tensor=name,
            value=str(tensor.dtype),
        )
    return NAMES[tensor.dtype], tensor.shape


def span_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its storage that a dense tensor with elements lies in."""
    width = tensor.element_size()
    # The last element that the strides lead to.
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    begin = int(tensor.storage_offset()) * width
    return begin, begin + (reach + 1) * width


def overlapping(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """Groups of tensors, by their numbers, that lie in each other's memory; most lie in none.

    In the order of the first of each group.
    """
    first: dict[tuple[torch.device, int], int] = {}
    shared: dict[int, list[int]] = {}  # of a storage with several, by its first
    for i, tensor in enumerate(tensors):
        # A tensor that is not in memory as it looks is stored as a copy.
        if not_dense(tensor) or tensor.numel() == 0 or tensor.is_conj() or tensor.is_neg():
            continue
        found = first.setdefault((tensor.device, tensor.untyped_storage().data_ptr()), i)
        if found != i:
            shared.setdefault(found, [found]).append(i)
    groups: list[list[int]] = []
    for members in shared.values():
        reached = -1
        for begin, end, i in sorted((*span_of(tensors[i]), i) for i in members):
            if begin >= reached:
                groups.append([])
            groups[-1].append(i)
            reached = max(reached, end)
    return sorted(sorted(group) for group in groups if len(group) > 1)


def not_dense(tensor: torch.Tensor) -> str | None:
    """What keeps it out of files; None for most tensors."""
    if tensor.layout is _STRIDED and not (tensor.is_meta or tensor.is_nested or tensor.is_quantized):
        return None
    if tensor.is_meta:
        return "on the device meta"
    if tensor.is_nested:
        return "of nested tensors"
    if tensor.is_quantized:
        return f"quantized as {tensor.dtype}"
    return f"with the layout {tensor.layout}"


def _instead_of(tensor: torch.Tensor) -> str:
    if tensor.is_meta:
        return ""
    if tensor.is_nested:
        return " (unbind() gives some)"
    return f" ({'dequantize' if tensor.is_quantized else 'to_dense'}() gives one)"


def slice_of(tensor: Tensor, index: Any, *, device: torch.device | str | None = None) -> torch.Tensor:
    """The elements that an index of ints, slices, None and ... takes; of whole bytes no others are read.

    Raises IndexError as numpy does; UnsupportedError for a dtype that torch lacks; else as Tensor.numpy().
    """
    if element_dtype(tensor) == FLOAT4 and FLOAT4 is not None:
        return _pairs_of(tensor, index).view(FLOAT4).to(device)
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        codes = tensor_of(tensor)
        dtype, taken = codes.dtype, codes.numpy()[index]
    else:
        # As numbers of the same width, where numpy does not have the type.
        taken = tensor._get(index, carrier_dtype(tensor.dtype))
    out = torch.empty(taken.shape, dtype=dtype)
    if out.numel() != 0:
        bytes_of(out).reshape(-1).view(taken.dtype).reshape(taken.shape)[...] = taken
    return out.to(device)


def _pairs_of(tensor: Tensor, index: Any) -> torch.Tensor:
    """A byte for each two elements along the last dimension. Raises UnsupportedError for a half of one."""
    planned = _slicing.plan(index, tensor.shape)
    source: Any = tensor._source
    last = None if planned is None else next((item for item in planned.rest[::-1] if item is not None), slice(None))
    if planned is None or last != slice(None) or any(bound % 2 for bound in planned.ranges[-1]):
        raise make_error(
            UnsupportedError,
            f"{tensor.path}: slice: got {index!r}, expected even bounds and no step in the last of the dimensions "
            f"{list(tensor.shape)}: torch has f4_e2m1 in pairs",
            "unsupported_feature",
            tensor=tensor.path,
            field="slice",
            value=str(index),
        )
    shape = (*planned.shape[:-1], planned.shape[-1] // 2)
    out = np.empty(math.prod(shape), np.uint8)
    if out.size != 0 and (source.is_quantized or source.of_delta):
        *ranges, (begin, end) = planned.ranges
        whole = np.frombuffer(tensor.raw(), np.uint8).reshape(torch_shape(tensor))
        out[:] = whole[_slicing.slices([*ranges, (begin // 2, end // 2)])].reshape(-1)
    elif out.size != 0:
        source.read_slice(planned.ranges, out)
    taken = out.reshape(shape)
    return torch.from_numpy(taken[planned.rest].copy() if planned.rest else taken)


def tensor_dtype(tensor: Tensor) -> torch.dtype | None:
    """What torch calls its element type; None if it has none of whole bytes."""
    return DTYPES.get(tensor.dtype)


def element_dtype(tensor: Tensor) -> torch.dtype | None:
    """The dtype of the tensor that is made of it; packed integers take a byte each. None where torch has none."""
    if tensor.dtype == "f4_e2m1":
        return FLOAT4 if tensor.encoding == "dense" and tensor.shape and tensor.shape[-1] % 2 == 0 else None
    return _UNPACKED.get(tensor.dtype) if is_packed(tensor.dtype) else DTYPES.get(tensor.dtype)


def torch_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of the tensor that is made of it."""
    return tensor.shape if element_dtype(tensor) is None else in_torch(tensor.dtype, tensor.shape)


def in_torch(dtype: str, place: Sequence[int]) -> tuple[int, ...]:
    """A shape, or an offset, in elements of a file as torch counts them; of f4_e2m1 the last of them is even."""
    return (*place[:-1], place[-1] // 2) if dtype == "f4_e2m1" else tuple(place)


def in_elements(dtype: str, place: Sequence[int]) -> tuple[int, ...]:
    """The other way round."""
    return (*place[:-1], 2 * place[-1]) if dtype == "f4_e2m1" else tuple(place)


def mapped_tensor(tensor: Tensor) -> torch.Tensor:
    """A tensor of a file that was opened with access="writable", in place if it is stored there as it is.

    Raises as Tensor.torch().
    """
    dtype = DTYPES.get(tensor.dtype)
    source: Any = tensor._source
    if not tensor.is_mapped or dtype is None or tensor.size == 0:
        return tensor_of(tensor)
    if tensor.encoding != "dense":
        return tensor_of(tensor)
    found = torch.frombuffer(source.payload(), dtype=dtype)
    # torch expects elements at multiples of their width.
    return found.reshape(tensor.shape) if found.data_ptr() % dtype.itemsize == 0 else tensor_of(tensor)
