"""A tensor in a file: nothing of it is read until it is asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._keywords import suggests
from .._support import OpenHere
from ..errors import UsageError, make_error
from . import slicing
from .dtypes import carrier_dtype, is_packed, numpy_dtype, packed_bytes, shaped, unpack
from .in_torch import torch_tensors
from .memory import MOST, claim, claim_part, empty
from .source import Buffer, CooArrays, CsrArrays, Source, bytes_of

if TYPE_CHECKING:
    from typing import Self

    import torch


@suggests
class Tensor(OpenHere):
    """One tensor of an open file. Immutable; any number of threads may use one.

    Arrays made of it keep the file mapped, also when the file object is gone. Those in the mapping
    are read-only, unless it was opened with access="writable".
    """

    __slots__ = ("_source",)
    _instead = "open its file in the worker, or pickle its numpy()"

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """Its own name, without the region's."""
        return self._source.name

    @property
    def region(self) -> str:
        """The name of its region; empty where the format has none."""
        return self._source.region

    @property
    def path(self) -> str:
        """ "region/name", by which a file finds it whatever other tensors there are."""
        return f"{self.region}/{self.name}" if self.region else self.name

    @property
    def role(self) -> str | None:
        """What it is for: "weights", "bias", "optimizer", …; None where the format does not say."""
        return self._source.role

    @property
    def dtype(self) -> str:
        """The format's name of its element type: "f32", "bf16", "f8_e4m3", …"""
        return self._source.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements in each dimension; of a sparse tensor with the zeros."""
        return self._source.shape

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements in all dimensions."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements, in the file's element type; of a sparse one, of its arrays."""
        return self._source.nbytes

    @property
    def stored_bytes(self) -> int:
        """Bytes that it takes in the file."""
        return self._source.stored_bytes

    @property
    def encoding(self) -> str:
        """ "dense", "csr" or "coo". Quantized tensors, and those of deltas, come out restored."""
        return self._source.encoding

    @property
    def codecs(self) -> list[str]:
        """How it is compressed: "none", "plane_entropy", "zstd", …"""
        return self._source.codecs

    @property
    def is_mapped(self) -> bool:
        """Whether its bytes lie in the file as they are, so that arrays of it copy nothing."""
        return self._source.is_mapped

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<Tensor {self.path!r} {self.dtype}[{shape}] {self.encoding}>"

    def __copy__(self) -> Self:
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def numpy(self, *, writable: bool = False) -> npt.NDArray[Any]:
        """All elements as an array of `shape`.

        In the mapping, without a copy and read-only, where `is_mapped` and the elements are whole
        bytes; else, and with `writable`, in memory of its own. Raises IntegrityError for damage,
        UnsupportedError where the dtype needs ml_dtypes, UsageError for a sparse tensor (use
        csr(), coo() or dense()), FormatError (limit_exceeded) for what is not mapped as dense().
        """
        source = self._source
        self.need_dense()
        if is_packed(source.dtype):  # an element takes a byte, and a few bytes of a file may hold many
            _core.check_allocation(min(self.size, MOST), source.stored_bytes)
            return self.array_of(self._all_bytes())
        if source.is_mapped and not writable:
            return self.array_of(self._all_bytes())
        claim([self])
        return self._copied()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self.numpy(writable=bool(copy))
        if dtype is None or np.dtype(dtype) == array.dtype:
            return array
        if copy is False:
            raise ValueError("another dtype needs a copy")
        return array.astype(dtype)

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """The elements that a numpy index takes, as an array or, of one element, a 0-d array.

        An index of ints, slices, None and ... reads only the elements that it takes, without a copy if
        they lie side by side in the mapping. Any other index is applied to the whole array. Raises
        IndexError as numpy does; else as numpy().
        """
        return self._get(index, numpy_dtype(self.dtype))

    def dense(self, *, writable: bool = False) -> npt.NDArray[Any]:
        """All elements, with the zeros that a sparse tensor does not store; of a dense one as numpy().

        Raises as numpy() or, for a sparse tensor, as csr(), and FormatError (limit_exceeded) for more than
        the larger of 1 GiB and 64 times its stored bytes.
        """
        if self.encoding == "dense":
            return self.numpy(writable=writable)
        claim([self])  # of few bytes, it may have any shape
        out = np.zeros(self.shape, numpy_dtype(self.dtype))
        if self.encoding == "csr":
            csr = self.csr()
            pointers = csr.row_pointers.astype(np.int64)
            rows = np.repeat(np.arange(self.shape[0]), pointers[1:] - pointers[:-1])
            out[rows, csr.column_indices] = csr.values
        else:
            coo = self.coo()
            out[tuple(coo.indices.astype(np.int64))] = coo.values
        return out

    def _claimed(self) -> npt.NDArray[Any]:
        """dense(writable=True), of one whose memory was claimed together with that of others."""
        source = self._source
        if source.encoding == "dense" and not is_packed(source.dtype):
            return self._copied()
        return self.dense(writable=True)

    def _copied(self) -> npt.NDArray[Any]:
        source = self._source
        out = empty(source.shape, numpy_dtype(source.dtype))
        if out.size != 0:
            # Types of others have no buffer.
            source.read(out if out.dtype.isbuiltin == 1 else out.reshape(-1).view(np.uint8))
        return out

    def csr(self) -> CsrArrays:
        """The arrays of a csr matrix; in the mapping, and read-only, where `is_mapped`.

        Checks every index. Raises UsageError for a tensor of another encoding or with packed
        elements, FormatError for an index that is out of range, IntegrityError for damage.
        """
        self._need("csr")
        pointers, columns, values = self._source.sparse()
        return CsrArrays(self._indices(pointers), self._indices(columns), self._values(values))

    def coo(self) -> CooArrays:
        """The arrays of a coordinate list; in the mapping, and read-only, where `is_mapped`.

        Checks every index. Raises as csr().
        """
        self._need("coo")
        indices, values = self._source.sparse()
        flat = self._indices(indices)
        return CooArrays(flat.reshape(self.ndim, -1), self._values(values))

    def torch(self, *, device: torch.device | str | None = None) -> torch.Tensor:
        """All elements as a torch tensor in memory of its own, on `device` or the CPU.

        Raises as numpy(); UnsupportedError for a dtype that torch lacks.
        """
        return torch_tensors().tensor_of(self, device=device)

    def raw(self) -> memoryview:
        """The bytes of the elements as the file has them: row-major, packed if they are.

        A sparse tensor has those of its arrays, one after the other. The bytes lie in the mapping, and
        are read-only, if `is_mapped`. Raises IntegrityError for damage.
        """
        return self._all_bytes().data

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """All elements for numpy.from_dlpack, torch.from_dlpack and their like.

        In the mapping, without a copy, where `is_mapped` and the reader knows DLPack 1.0
        (`max_version`), which tells it that they are read-only; else, and with `copy`, in memory of
        their own. torch does not heed that: there is no writing to such a tensor of torch's, ask
        for copy=True to do so.
        Raises BufferError for another device, for copy=False if there is no other way, and for
        a dtype that DLPack lacks; else as numpy().
        """
        from .dlpack import exported

        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"{self.path}: DLPack device {tuple(dl_device)}; expected the CPU, (1, 0)")
        self.need_dense()
        in_place = self.is_mapped and not is_packed(self.dtype) and max_version is not None and max_version >= (1, 0)
        if copy is False and not in_place:
            raise BufferError(f"{self.path}: cannot be handed over without a copy")
        if in_place and not copy:
            return exported(self.dtype, self._carried(self._all_bytes()), max_version=max_version)
        if is_packed(self.dtype):
            return self.numpy().__dlpack__()
        array = self._carried(self._own_bytes())
        return exported(self.dtype, array, **({} if max_version is None else {"max_version": max_version}))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def array_of(self, data: Buffer | npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """An array of `shape` over the bytes of all elements, as the file has them; it keeps them.

        Elements of less than a byte become a copy with a byte each. Raises ValueError for another number of bytes,
        and UnsupportedError where the dtype needs ml_dtypes.
        """
        return shaped(self.dtype, self.shape, bytes_of(data))

    def _carried(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        return data.view(carrier_dtype(self.dtype)).reshape(self.shape)

    def _get(self, index: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        self.need_dense()
        planned = slicing.plan(index, self.shape)
        if planned is None:
            return np.asarray(self.numpy()[index])
        array = self._read_ranges(planned, dtype)
        return array[(*planned.rest, ...)] if planned.rest else array

    def _all_bytes(self) -> npt.NDArray[np.uint8]:
        if self._source.is_mapped:
            return bytes_of(self._source.payload())
        return self._own_bytes()

    def _own_bytes(self) -> npt.NDArray[np.uint8]:
        claim([self])
        out = empty((self._source.nbytes,), np.dtype(np.uint8))
        if out.size != 0:
            self._source.read(out)
        return out

    def _indices(self, buffer: Buffer) -> npt.NDArray[Any]:
        return bytes_of(buffer).view("<u8" if self._source.wide_indices else "<u4")

    def _values(self, buffer: Buffer) -> npt.NDArray[Any]:
        data = bytes_of(buffer)
        if is_packed(self.dtype):
            raise make_error(
                UsageError,
                "entries of packed elements: only raw() has them",
                "wrong_state",
                tensor=self.path,
                value=self.dtype,
            )
        return data.view(numpy_dtype(self.dtype))

    def _read_ranges(self, planned: slicing.Plan, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        source = self._source
        count = slicing.elements(planned)
        if count == 0:
            return np.empty(planned.shape, dtype)
        rows = slicing.rows(planned, self.shape)
        packed = is_packed(source.dtype)
        if source.is_mapped and rows is not None and not packed:
            return bytes_of(source.rows(*rows)).view(dtype).reshape(planned.shape)
        if source.is_quantized or (source.of_delta and packed):
            whole = unpack(source.dtype, self._all_bytes(), self.size) if packed else self._all_bytes()
            return whole.view(dtype).reshape(source.shape)[slicing.slices(planned.ranges)]
        if source.of_delta:
            # Whole rows, from the first to the last that something is taken of.
            (begin, end), *within = planned.ranges or [(0, 1)]
            row = source.nbytes // (source.shape[0] if source.shape else 1)
            claim_part(source, (end - begin) * row)
            out = np.empty((end - begin) * row, np.uint8)
            source.read_part(begin * row, out)
            array = out.view(dtype).reshape(end - begin, *source.shape[1:])
            return array[:, *slicing.slices(within)].reshape(planned.shape)
        nbytes = packed_bytes(source.dtype, count)
        claim_part(source, nbytes)
        out = np.empty(nbytes, np.uint8)
        source.read_slice(planned.ranges, out)
        if packed:
            return unpack(source.dtype, out, count).reshape(planned.shape)
        return out.view(dtype).reshape(planned.shape)

    def need_dense(self) -> None:
        """Raises UsageError for a sparse tensor."""
        self._need("dense", "; use csr(), coo() or dense()")

    def _need(self, encoding: str, hint: str = "") -> None:
        if self.encoding != encoding:
            raise make_error(
                UsageError,
                f"{self.path}: encoding: got {self.encoding}, expected {encoding}{hint}",
                "wrong_state",
                tensor=self.path,
                field="encoding",
                value=self.encoding,
                expected=encoding,
            )
