"""What a file says of itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from .._html import Shown
from .._keywords import suggests
from .._support import from_json, paths

if TYPE_CHECKING:
    from .._types import Access, Path

__all__ = ["ChecksumFacts", "DTypeTotal", "DeltaBase", "Info", "LossyFacts", "WrapperFacts", "info"]


@dataclass(frozen=True)
class WrapperFacts:
    """Frames around a whole file, or a packed delta."""

    codec: str
    """"zstd" or "lz4"."""
    packed: bool
    """A packed delta, which has no frames around it."""
    seek_table: bool
    """Parts can be read alone."""
    frames: int | None
    """None without a seek table."""
    checksum_inside: bool | None
    """Whether the checksum of a file of version 0.1 is inside the frame. None for other formats."""


@dataclass(frozen=True)
class DTypeTotal:
    """The tensors of one dtype."""

    dtype: str
    tensor_count: int
    elements: int
    """Elements of these tensors; of csr and coo tensors the stored ones."""
    logical_bytes: int


@dataclass(frozen=True)
class LossyFacts:
    """How far quantized tensors are from what was saved first."""

    quantized_tensors: int
    lossy_generation: int | None
    """How often numbers were rounded, at most; None where the format does not say."""
    max_lossy_generations: int | None
    """How often they may be; None as above."""


@dataclass(frozen=True)
class ChecksumFacts:
    """What the bytes of the file are checked against."""

    type: str
    """"none", "sha256", "crc32", "block_tree", "xxh64", "sha1"."""
    tensors: int | None
    """Tensors that it covers; None for all, or none."""
    leaves: str | None
    """The hash of the blocks of a tree; None for other types."""
    block_bytes: int | None
    digest: str | None
    """Hexadecimal digits."""


@dataclass(frozen=True)
class DeltaBase:
    """What a delta says of the file that it was taken against."""

    path: str | None
    """Or the key; None where the format has none."""
    checksum: str
    training_steps: int | None
    depth: int | None
    """Deltas between it and the full file, itself included."""


@dataclass(frozen=True)
class Info(Shown):
    """What a file says of itself. None: its format does not say. Sizes are in bytes."""

    path: str
    format: str
    """As detect_format() tells it: "thalia", "safetensors", "gguf", …"""
    version: str | None
    """The version of the format."""
    delta: bool
    """It needs the file that delta_base names."""
    side_file: bool
    """It holds tables and texts of a checkpoint, and no payloads."""
    disk_bytes: int
    file_bytes: int
    """Without frames around the file and debris after it."""
    dead_bytes: int
    """The part of `file_bytes` that is unused since an append."""
    debris_bytes: int
    """Bytes after the end, left by an append that was interrupted."""
    wrapper: WrapperFacts | None
    region_count: int | None
    connection_count: int | None
    tensor_count: int | None
    """With the matrices of connections. None, as all down to `lossy`, of a delta of 0.1, which is a
    pickle and never opened."""
    parameters: int | None
    """Elements of tensors that are learned: by their roles, or if there are none by their names. Integers
    into which a quantizer packed several weights count as these weights."""
    uncounted_tensors: int | None
    """Packed tensors that are not in `parameters`: no table tells how many bits a weight has."""
    logical_bytes: int | None
    value_bytes: int | None
    """Bytes of all tensors in memory once restored; None for a delta that does not have all of this itself."""
    stored_bytes: int | None
    dtypes: tuple[DTypeTotal, ...] | None
    """Most elements first."""
    codecs: tuple[str, ...] | None
    lossy: LossyFacts | None
    """None where no tensor is quantized."""
    total_neurons: int | None
    total_synapses: int | None
    training_steps: int | None
    """As the header says, or if that says 0 or nothing, the metadata."""
    training_steps_member: str | None
    """The member of the metadata that training_steps comes from."""
    epoch: float | None
    timestamp: int | None
    """Seconds since 1970, UTC."""
    generation: int | None
    """1 after a save, one more with each append."""
    file_uuid: str | None
    flags: tuple[str, ...]
    checksum: ChecksumFacts
    content_hash: str | None
    delta_base: DeltaBase | None
    warnings: tuple[str, ...]
    """What is odd about a file of version 0.1 and was read all the same."""
    beside: tuple[str, ...]
    """What it holds besides tensors and metadata, a sentence each: conversions lose it."""
    growth_history: tuple[dict[str, Any], ...] | None
    """As `thalia log` shows it. None: the metadata have one of another kind."""
    metadata: dict[str, Any] | None


@suggests
def info(path: Path, *, access: Access = "mapped", search: Iterable[Path] = (), legacy: bool = False) -> Info:
    """What a file of any format says of itself, as `thalia info` tells it.

    Header, tables and metadata are read and no payload, so it is fast for any size and cannot tell
    whether payloads are whole: verify() does. A file of version 0.1 is read whole.

    search: folders in which the files are looked for that a delta of mckp, slime or trl was taken against.
    legacy: take files that the programs of their formats no longer do.
    Raises IoError where the file cannot be opened; FormatError; IntegrityError; UnsupportedError.
    """
    found: dict[str, Any] = from_json(_core.info(path, access, paths(search), legacy), os.fspath(path))
    del found["schema"]
    found["path"] = os.fspath(path)
    for name, kind in _PARTS.items():
        if found[name] is not None:
            found[name] = kind(**found[name])
    if found["dtypes"] is not None:
        found["dtypes"] = tuple(DTypeTotal(**of) for of in found["dtypes"])
    for name in ("codecs", "flags", "warnings", "beside", "growth_history"):
        if found[name] is not None:
            found[name] = tuple(found[name])
    return Info(**found)


_PARTS: dict[str, Any] = {
    "wrapper": WrapperFacts,
    "lossy": LossyFacts,
    "checksum": ChecksumFacts,
    "delta_base": DeltaBase,
}
