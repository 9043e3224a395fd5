"""Dictionaries of named tensors, in both formats: what numpy.py and torch.py share."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from . import _core
from ._file import File, FlatFile, Path, SafetensorsFile
from ._file import open as open_file
from ._shards import ShardedFile
from ._writer import Writer

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
        _core.save_safetensors(path, [tuple(t) for t in tensors], pairs, dict(options))
        return
    writer = Writer(path, **options)
    writer.add_tensors(tensors)
    # As a conversion from safetensors has it, and one back reads it. docs/states.md, "Conversions".
    origin: dict[str, Any] = {} if metadata is None else {"metadata": dict(metadata)}
    writer.metadata = {"format": "safetensors", "safetensors": origin}
    writer.commit()


def flat_metadata(file: File | FlatFile | ShardedFile) -> dict[str, str] | None:
    """The texts that a safetensors file has, or that the .thalia file has of one; of an index its own."""
    if isinstance(file, SafetensorsFile):
        return file.metadata or None
    metadata = file.metadata
    origin = metadata.get("safetensors")
    if isinstance(origin, dict):
        inner = origin.get("metadata")
        return {str(k): str(v) for k, v in inner.items()} if isinstance(inner, dict) else None
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    return texts or None


def saved_bytes(tensors: Sequence[Named], metadata: Mapping[str, str] | None, format: Format) -> bytes:
    """The bytes of the file, which is written to the folder for temporary files meanwhile."""
    import tempfile  # slow to import

    with tempfile.TemporaryDirectory(prefix="thalia-") as folder:
        path = os.path.join(folder, f"tensors.{format}")
        save_named(tensors, path, metadata, {"durability": "none"})
        with open(path, "rb") as file:
            return file.read()


class OpenBytes:
    """A file of these bytes, open as long as the context; in the folder for temporary files."""

    def __init__(self, data: bytes) -> None:
        import tempfile  # slow to import

        self._folder = tempfile.TemporaryDirectory(prefix="thalia-")
        # What the format is its first bytes tell.
        name = "tensors.thalia" if data[:4] == b"THAL" else "tensors.safetensors"
        self._path = os.path.join(self._folder.name, name)
        with open(self._path, "wb") as file:
            file.write(data)

    def __enter__(self) -> File | FlatFile:
        return open_file(self._path)

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()
