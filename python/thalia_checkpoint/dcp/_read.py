"""What one rank reads of a distributed checkpoint: the elements it needs, and no others."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner

from .._core import printable
from .._distributed.metadata import Chunk, Document, StoredFile, StoredValue
from .._files.any_file import OpenOptions
from .._files.dtypes import carrier_dtype, is_packed
from .._files.file import File, Region
from .._files.open import open_one
from .._files.tensor import Tensor
from .._support import ClosedAtEnd
from .._types import Access
from ..errors import FormatError, make_error
from ..torch._decode import decode
from ..torch._tensors import bytes_of, element_dtype, in_elements, in_torch, slice_of, tensor_of
from ._write import compresses_itself


class OpenFiles(ClosedAtEnd):
    """The files of a checkpoint, each opened when it is first needed, and as its metadata have it."""

    def __init__(self, folder: str, access: Access, verify: bool) -> None:
        self._folder = folder
        self._access: Access = access
        self._verify = verify
        self._open: dict[StoredFile, File] = {}

    def close(self) -> None:
        for file in self._open.values():
            file.close()

    def file(self, stored: StoredFile) -> File:
        """Raises MissingFileError; FormatError for another file than was saved."""
        if stored in self._open:
            return self._open[stored]
        path = os.path.join(self._folder, stored.name)
        file = open_one(path, OpenOptions(self._access, "on_first_touch" if self._verify else "off"))
        found = (file.file_bytes, str(file.header["file_uuid"])) if isinstance(file, File) else None
        if found != (stored.bytes, stored.uuid) or not isinstance(file, File) or file.is_delta:
            raise make_error(
                FormatError,
                f"{path}: got a file of (bytes, uuid) {found}, expected {(stored.bytes, stored.uuid)}, which belongs "
                "to the checkpoint",
                "bad_value",
                path=path,
                field="file_uuid",
            )
        self._open[stored] = file
        return file

    def chunk(self, chunk: Chunk, dtype: str) -> Tensor:
        """Raises NotFoundError; FormatError for a tensor that is not as the metadata have it."""
        tensor: Tensor = self.file(chunk.file).region(chunk.region)[chunk.name]
        found = (tensor.dtype, tensor.shape, tensor.encoding)
        if found != (dtype, chunk.shape, "dense") or tensor._source.is_quantized:
            raise make_error(
                FormatError,
                f"{self.file(chunk.file).path}: {tensor.path}: got {found}, expected {(dtype, chunk.shape, 'dense')}",
                "shape_mismatch",
                path=self.file(chunk.file).path,
                tensor=tensor.path,
            )
        return tensor

    def value(self, name: str, value: StoredValue) -> Any:
        """Raises FormatError for a tree that breaks the rules."""
        region: Region | dict[str, Tensor] = {}
        if value.file is not None:
            region = self.file(value.file).region(value.region)
        try:
            return decode(
                value.tree,
                lambda tensor: tensor_of(region[tensor]),
                lambda tensor: region[tensor].numpy(writable=True),
            )
        except FormatError as error:
            where = os.path.join(self._folder, "checkpoint.json")
            error.args = (printable(f"{where}: values.{name}: {error}"),)
            raise


def read_items(files: OpenFiles, document: Document, plan: LoadPlan, planner: LoadPlanner) -> None:
    """Reads a rank's items into the tensors that the planner gives for them.

    Raises MissingFileError, IoError, FormatError, IntegrityError.
    """
    chunks = {
        (name, in_torch(tensor.dtype, chunk.offset)): (chunk, tensor.dtype)
        for name, tensor in document.tensors.items()
        for chunk in tensor.chunks
    }
    for item in plan.items:
        name = item.storage_index.fqn
        if item.type == LoadItemType.BYTE_IO:
            if name in document.tensors:
                raise compresses_itself(name, "MithrilLoadPlanner", "DefaultLoadPlanner")
            # A planner takes what torch.save() makes. These bytes are of this process: the file has
            # data alone.
            stream = io.BytesIO()
            torch.save(files.value(name, document.values[name]), stream)
            stream.seek(0)
            planner.load_bytes(item, stream)
            continue
        chunk, dtype = chunks[name, tuple(item.storage_index.offset or ())]
        target = planner.resolve_tensor(item)
        begin, lengths = item.storage_offsets, item.lengths
        if tuple(target.shape) != tuple(lengths):
            raise ValueError(f"{name!r}: the planner gave a target of {list(target.shape)}, expected {list(lengths)}")
        read_part(files.chunk(chunk, dtype), begin, target.detach())
        planner.commit_tensor(item, target)


def read_part(tensor: Tensor, begin: Sequence[int], target: torch.Tensor) -> None:
    """Fills a target of any device, layout and dtype with the part of its shape that begins there."""
    if target.numel() == 0:
        return
    first, extents = in_elements(tensor.dtype, begin), in_elements(tensor.dtype, target.shape)
    ranges = [(at, at + n) for at, n in zip(first, extents, strict=True)]
    index = tuple(slice(*span) for span in ranges)
    if target.device.type != "cpu" or target.dtype != element_dtype(tensor) or target.is_conj() or target.is_neg():
        target.copy_(slice_of(tensor, index))
    elif not target.is_contiguous() and is_packed(tensor.dtype):
        target.copy_(slice_of(tensor, index))
    elif not target.is_contiguous():
        # numpy lacks some types: numbers of the same width stand for them.
        carrier = carrier_dtype(tensor.dtype)
        plain = target if carrier.kind not in "u" else target.view(getattr(torch, carrier.name))
        plain.numpy()[...] = tensor._get(index, carrier)
    elif extents == tensor.shape:
        tensor._source.read(bytes_of(target))
    else:
        tensor._source.read_slice(ranges, bytes_of(target))
