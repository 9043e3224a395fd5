"""A distributed checkpoint as the nested state that was saved, in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from .._distributed import folder as _dcp_folder
from .._distributed import metadata as _dcp_metadata
from .._distributed import parse as _dcp_parse
from .._distributed.metadata import StoredTensor
from .._files.memory import claim
from .._files.tensor import Tensor
from .._support import io_errors
from ..torch._decode import decode
from ..torch._tensors import TORCH_DTYPES, in_torch, tensor_of
from ._consolidate import fill, nbytes, nested, value_trees
from ._read import OpenFiles


def load_folder(folder: str, place: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """What load() gives of the one file that consolidate() writes. place: moves each tensor that was read.

    Raises as ThaliaStorageReader.
    """
    root = _dcp_folder.to_read(folder)
    with io_errors():
        document = _dcp_parse.read(root)
    own: dict[str, Tensor] = {}
    with OpenFiles(root, "mapped", True) as files:
        trees = value_trees(document, files, own.__setitem__)
        tree = nested(document, trees, os.path.join(root, _dcp_metadata.NAME))
        claim(files.chunk(chunk, stored.dtype) for stored in document.tensors.values() for chunk in stored.chunks)

        def read(name: str) -> torch.Tensor:
            return place(tensor_of(own[name]) if name in own else _whole(document.tensors[name], files))

        return decode(tree, read, lambda name: own[name].numpy(writable=True))


def _whole(stored: StoredTensor, files: OpenFiles) -> torch.Tensor:
    shape, dtype = in_torch(stored.dtype, stored.shape), TORCH_DTYPES[stored.dtype]
    if nbytes(stored) == 0:
        return torch.empty(shape, dtype=dtype)
    data = torch.empty(nbytes(stored), dtype=torch.uint8)
    fill(data.numpy().data, stored, files)
    return data.view(dtype).reshape(shape)
