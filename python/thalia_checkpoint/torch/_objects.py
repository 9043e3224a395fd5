"""Objects into a file and out of it: what `thalia_checkpoint.torch` and its checkpointer share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from .._encoder import Instead, nothing
from .._files.any_file import parts, verify_ahead
from .._files.memory import claim
from .._files.named import path_of_bytes
from .._files.open import open as open_file
from .._files.writer import Writer
from .._keywords import suggests
from .._leaves import MEMBER, VERSION, checked
from .._types import Path
from ._decode import decode
from ._encode import Encoded, encode
from ._staging import Staging
from ._tensors import mapped_tensor, tensor_of
from ._tree import tree_of

Made = TypeVar("Made", bound=Writer)


def declare(obj: Any, path: Path | int, options: Mapping[str, Any], instead: Instead = nothing) -> Writer:
    """A writer with all that save(obj, path) writes, before it is written.

    path: as Writer takes it. instead: as of encode().
    """
    encoded = encode(obj, instead)
    return _filled(Writer(path, **options), encoded)


def declare_staged(obj: Any, begin: Callable[[], Made], staging: Staging) -> tuple[Made, bool]:
    """The same with the writer that begin() gives, and whether it has copies of the staging."""
    encoded = encode(obj, staging=staging)
    return _filled(begin(), encoded), encoded.staged


def _filled(writer: Made, encoded: Encoded) -> Made:
    metadata: dict[str, Any] = {MEMBER: {"version": VERSION, "tree": encoded.tree}}
    if encoded.attributes:
        metadata["pt"] = {"attributes": encoded.attributes}
    writer.metadata = metadata
    writer.add_tensors(encoded.tensors, encoded.roles)
    return writer


@suggests
def load(
    source: Path | bytes | bytearray | memoryview, *, device: torch.device | str | None = None, mmap: bool = False
) -> Any:
    """What save() was given, with its tensors on `device` (by default the CPU), or what torch.save()
    was, of which no pickle is run. A file that holds tensors alone, of any format, gives a
    dictionary of them; so does the folder or the index of a model in several files. Quantized tensors
    of torch come as their codes, and sparse ones with their zeros.

    source: a path, or the bytes of any such file.

    mmap: tensors lie in a private mapping of the file, where their bytes are verified; writing to one
        changes this process's copy alone. Compressed tensors are decoded.

    Raises IoError, FormatError, IntegrityError; UnsupportedError for a dtype that torch lacks.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        with path_of_bytes(source) as path:
            return load(path, device=device, mmap=mmap)
    read = mapped_tensor if mmap else tensor_of
    with open_file(source, access="writable" if mmap else "mapped", shared_memory=True) as file:
        if mmap:
            verify_ahead(file)
        elif device is None or torch.device(device).type == "cpu":
            claim(tensor for part in parts(file) for tensor in part.tensors.values())
        tree, attributes = tree_of(file)
        if tree is None:
            state: dict[str, torch.Tensor] = {}
            for part in parts(file):
                state |= {name: _on(read(tensor), device) for name, tensor in part.tensors.items()}
            return state
        by_name = {tensor.name: tensor for tensor in file.tensors.values()}
        return decode(
            checked(tree, os.fspath(source)),
            lambda name: _on(read(by_name[name]), device),
            lambda name: by_name[name].numpy(writable=True),
            attributes,
        )


def _on(tensor: torch.Tensor, device: torch.device | str | None) -> torch.Tensor:
    return tensor if device is None else tensor.to(device)
