"""Dictionaries of named tensors, in both formats: what numpy.py and torch.py share."""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Unpack

from .. import _core, _log
from .._types import Path
from ..errors import UsageError, make_error
from .any_file import AnyFile
from .file import File
from .writer import SaveOptions, Writer

Format = Literal["safetensors", "thalia"]


class Named(NamedTuple):
    """A tensor on its way into a file."""

    name: str
    dtype: str
    """The format's name."""
    shape: tuple[int, ...]
    data: Any
    """Its elements as the file has them: a contiguous buffer."""


def is_safetensors(path: Path) -> bool:
    return os.fspath(path).endswith(".safetensors")


def save_named(
    tensors: Sequence[Named],
    path: Path,
    metadata: Mapping[str, str] | None,
    options: Mapping[str, Any],
) -> None:
    """Writes a .safetensors file where the name ends so, else a .thalia file."""
    if is_safetensors(path):
        pairs = None if metadata is None else list(metadata.items())
        begin = time.perf_counter()
        nbytes = _core.save_safetensors(path, [tuple(t) for t in tensors], pairs, dict(options))
        _log.since(begin, "saved", path, nbytes)
        return
    _filled(Writer(path, **options), tensors, metadata).commit()


def _filled(writer: Writer, tensors: Sequence[Named], metadata: Mapping[str, str] | None) -> Writer:
    writer.add_tensors(tensors)
    # As a conversion from safetensors has it, and one back reads it. docs/format/states.md, "Conversions".
    source: dict[str, Any] = {} if metadata is None else {"metadata": dict(metadata)}
    writer.metadata = {"format": "safetensors", "safetensors": source}
    return writer


def flat_metadata(file: File | AnyFile) -> dict[str, str] | None:
    """The texts that a safetensors file has, or that a file of another format has of one; of a model in several
    files those of the first."""
    metadata = file.metadata
    source = metadata.get("safetensors")
    if isinstance(source, dict):
        inner = source.get("metadata")
        return {str(k): str(v) for k, v in inner.items()} if isinstance(inner, dict) else None
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    return texts or None


def saved_bytes(
    tensors: Sequence[Named], metadata: Mapping[str, str] | None, format: Format, **options: Unpack[SaveOptions]
) -> bytes:
    """The bytes of the file. options: of a .thalia file."""
    if check_format(format) == "safetensors":
        pairs = None if metadata is None else list(metadata.items())
        return _core.serialize_safetensors([tuple(t) for t in tensors], pairs)
    return committed_bytes(lambda memory: _filled(Writer(memory, **options), tensors, metadata))


def check_format(format: Format) -> Format:
    """Raises UsageError for any other name."""
    if format in ("safetensors", "thalia"):
        return format
    raise make_error(
        UsageError,
        f"format: got {format!r}, expected 'safetensors' or 'thalia'",
        "bad_argument",
        field="format",
        value=str(format),
    )


def committed_bytes(declared: Callable[[int], Writer]) -> bytes:
    """The file that a writer makes, in memory alone. declared: gives it, for the descriptor of an empty file."""
    memory = os.memfd_create("thalia", os.MFD_CLOEXEC)
    try:
        size = declared(memory).commit().file_bytes
        with mmap.mmap(memory, size, prot=mmap.PROT_READ) as mapped:
            return mapped[:]
    finally:
        os.close(memory)
