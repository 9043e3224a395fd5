"""Open files of formats without regions: GGUF, PyTorch, ONNX, NumPy and the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._support import from_json, paths
from .._types import Access, Path, Verification
from .dtypes import is_packed
from .file import FlatFile, FlatSource, FlatTensors
from .tensor import Buffer, Tensor, bytes_of


class _AnySource(FlatSource):
    """A tensor that is read, or decoded, each time that it is asked for."""

    __slots__ = ("_number", "_of", "_stored_bytes", "encoding", "is_mapped", "wide_indices")

    def __init__(self, of: _core.AnyFile, number: int, facts: dict[str, Any]) -> None:
        self._of = of
        self._number = number
        self.name = facts["name"]
        self.dtype = facts["dtype"]
        self.shape = facts["shape"]
        self.nbytes = facts["nbytes"]
        self.offset = facts["offset"] or 0
        self.encoding = facts["encoding"]
        self.wide_indices = facts["wide_indices"]
        self.is_mapped = facts["in_place"]
        self._stored_bytes = facts["stored_bytes"]

    @property
    def stored_bytes(self) -> int:
        # What does not lie together is no more than the file has.
        return min(self.nbytes, self._of.file_bytes) if self._stored_bytes is None else self._stored_bytes

    @property
    def codecs(self) -> list[str]:
        return ["none"] if self.is_mapped else []

    def payload(self) -> Buffer:
        return self._of.payload(self._number)

    def decoded(self) -> Buffer:
        return self._of.decoded(self._number)

    def sparse(self) -> Sequence[Buffer]:
        return self._of.sparse(self._number)


class _AnyTensor(Tensor):
    """Its elements are decoded into the memory that is handed out."""

    __slots__ = ()
    _source: _AnySource

    def numpy(self, *, writable: bool = False) -> npt.NDArray[Any]:
        if self.is_mapped or is_packed(self.dtype):
            return super().numpy(writable=writable)
        self.need_dense()
        return self.array_of(self._own_bytes())

    def _own_bytes(self) -> npt.NDArray[np.uint8]:
        return super()._own_bytes() if self.is_mapped else bytes_of(self._source.decoded())


class AnyFile(FlatFile):
    """An open file of any format without regions."""

    _open: _core.AnyFile | None

    def __init__(
        self,
        path: Path,
        access: Access,
        verification: Verification,
        threads: int,
        search: Iterable[Path],
        *,
        dequantize: bool,
        legacy: bool,
        shared_memory: bool,
    ) -> None:
        raw = _core.AnyFile.open(path, access, verification, threads, paths(search), dequantize, legacy, shared_memory)
        super().__init__(raw, path, FlatTensors(raw.names, lambda i: _AnyTensor(_AnySource(raw, i, raw.tensor(i)))))

    @property
    def format(self) -> str:
        """Its name, as detect_format() tells it: "gguf", "pt", …"""
        return str(self._raw.format)

    @property
    def version(self) -> str:
        """The version of the format, as the file says it; empty if it does not."""
        return str(self._raw.version)

    @property
    def training_steps(self) -> int | None:
        """None where the file does not say."""
        steps: int | None = self._raw.training_steps
        return steps

    @property
    def file_bytes(self) -> int:
        """Of all its files, if it is a folder."""
        return int(self._raw.file_bytes)

    @property
    def losses(self) -> tuple[str, ...]:
        """What the file holds besides tensors and metadata, a sentence each: conversions lose it. Also that it
        is one of several that make a model, and which."""
        return tuple(self._raw.losses)

    @property
    def metadata(self) -> dict[str, Any]:
        """Of most formats {"format": NAME, NAME: {…}}: what a .thalia file made of this one holds; a
        copy each time."""
        found: dict[str, Any] = from_json(self._raw.metadata_json, self.path)
        return found

    @property
    def types(self) -> dict[str, str]:
        """The format's own names of the element types that its tensors have no dtype for, by the names of
        these: {"blk.0.attn_q.weight": "Q4_K"}. Such a tensor's elements are its codes. Empty where these
        were dequantized."""
        return dict(self._raw.types)
