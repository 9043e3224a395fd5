"""Open files of formats without regions, and models in several files: safetensors, GGUF, PyTorch and the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core, _html
from .._support import ClosedAtEnd, OpenHere, from_json
from .._types import Access, Path, Verification
from .dtypes import is_packed
from .file import File, Tensors, closed
from .flat import FlatSource, FlatTensors
from .source import Buffer, bytes_of
from .tensor import Tensor


class OpenOptions(NamedTuple):
    """What open() was asked for."""

    access: Access = "mapped"
    verification: Verification = "on_first_touch"
    threads: int = 0
    search: Sequence[Path] = ()
    dequantize: bool = False
    legacy: bool = False
    shared_memory: bool = False


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

    def read(self, out: npt.NDArray[Any]) -> None:
        self._of.read(self._number, out)

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

    def _claimed(self) -> npt.NDArray[Any]:
        return super()._claimed() if self.is_mapped else self.dense(writable=True)

    def _own_bytes(self) -> npt.NDArray[np.uint8]:
        return super()._own_bytes() if self.is_mapped else bytes_of(self._source.decoded())


class AnyFile(ClosedAtEnd, OpenHere, Mapping[str, Tensor]):
    """An open file of any format without regions, or a model in several files: tensors by name, in the
    order of the file, or of one file after the other.

    An unknown name raises NotFoundError, a KeyError. Any number of threads may use one. After close()
    everything raises UsageError; tensors and arrays that were read before stay valid.
    """

    def __init__(self, raw: _core.AnyFile, path: Path, options: OpenOptions) -> None:
        self._open: _core.AnyFile | None = raw
        self._path = os.fsdecode(path)
        self._options = options
        self._tensors: Tensors = FlatTensors(raw.names, lambda i: _AnyTensor(_AnySource(raw, i, raw.tensor(i))))
        self._parts: list[File] = []

    @property
    def _raw(self) -> _core.AnyFile:
        self._check_open()
        assert self._open is not None
        return self._open

    def _check_open(self) -> None:
        if self._open is None:
            raise closed()

    @property
    def path(self) -> str:
        """The path that it was opened by; of a model in several files, that of its index."""
        self._check_open()
        return self._path

    @property
    def files(self) -> list[str]:
        """All files that it is read from, and none twice; of a model in several its index is the first."""
        return list(dict.fromkeys([self.path, *map(os.fspath, self._raw.files)]))

    @property
    def format(self) -> str:
        """Its name, as detect_format() tells it: "safetensors", "gguf", "pt", …"""
        return self._raw.format

    @property
    def version(self) -> str:
        """The version of the format, as the file says it; empty if it does not."""
        return self._raw.version

    @property
    def training_steps(self) -> int | None:
        """None where the file does not say."""
        return self._raw.training_steps

    @property
    def file_bytes(self) -> int:
        """Bytes of all its files together."""
        return self._raw.file_bytes

    @property
    def losses(self) -> tuple[str, ...]:
        """What the file holds besides tensors and metadata, a sentence each: conversions lose it. Also that it
        is one of several that make a model, and which."""
        return tuple(self._raw.losses)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of a .thalia file made of this one: for most formats {"format": NAME, NAME: {…}}.
        It is a copy each time. The texts of a safetensors file are {"safetensors": {"metadata": {…}}} in it."""
        text = self._raw.metadata_json
        found: dict[str, Any] = from_json(text, self.path) if text else {}
        return found

    @property
    def types(self) -> dict[str, str]:
        """The format's own names of the element types that its tensors have no dtype for, by the names of
        these: {"blk.0.attn_q.weight": "Q4_K"}. Such a tensor's elements are its codes. Empty where these
        were dequantized."""
        return dict(self._raw.types)

    @property
    def tensors(self) -> Tensors:
        """All tensors by their names, as File.tensors has them."""
        self._check_open()
        return self._tensors

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def close(self) -> None:
        """Lets go of the file. Arrays made of it stay valid, and keep it mapped."""
        self._open = None
        self._tensors = Tensors([])
        for part in self._parts:
            part.close()

    def __repr__(self) -> str:
        if self._open is None:
            return f"<{type(self).__name__}, closed>"
        return f"<{type(self).__name__} {self.path!r}: {len(self)} tensors>"

    def _repr_html_(self) -> str:
        raw = self._open
        if raw is None:
            return _html.of_repr(self)
        title = f"{self.path}: {raw.format} of {_core.human_bytes(raw.file_bytes)}, {len(self)} tensors"
        return _html.of_tensors(title, map(self._tensors.__getitem__, self._tensors), len(self))


def parts(file: File | AnyFile) -> list[File | AnyFile]:
    """The files that hold its tensors. Those of a model in .thalia files are open as such, and can be
    streamed; all else is the file itself."""
    if isinstance(file, File) or file.format != "thalia-shards":
        return [file]
    if not file._parts:
        file._parts = [open_thalia(path, file._options) for path in file.files[1:]]
    return [*file._parts]


def open_thalia(path: Path, options: OpenOptions) -> File:
    """A .thalia file, or a delta."""
    return File(_core.File.open(path, options.access, options.verification, options.threads, options.search))


def verify_ahead(file: File | AnyFile) -> None:
    """For those who read all of it, in place: File.verify_ahead() of each part. Other formats have no checksum
    of a whole file."""
    for part in parts(file):
        if isinstance(part, File):
            part.verify_ahead()
