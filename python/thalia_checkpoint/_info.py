"""What a file says of itself, whichever format it has."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._file import Access, Path

__all__ = ["DTypeTotal", "DeltaBase", "FileInfo", "Wrapper", "info"]


@dataclass(frozen=True)
class DTypeTotal:
    """All tensors of a dtype."""

    dtype: str
    tensors: int
    elements: int
    """Of csr and coo those stored."""
    logical_bytes: int


@dataclass(frozen=True)
class Wrapper:
    """Frames around a whole file."""

    codec: str
    """"zstd" or "lz4"."""
    frames: int | None
    """None: there is no table of them, and parts cannot be read alone."""


@dataclass(frozen=True)
class DeltaBase:
    """What a delta says of the file that it was taken against."""

    path: str | None
    """As stored: from the delta's folder, or absolute; of a .mckp file the key."""
    checksum: str
    """That the base has to have, in hexadecimal."""
    training_steps: int | None
    depth: int | None
    """Deltas from this one down to a full file."""


@dataclass(frozen=True)
class FileInfo:
    """What a file says of itself. None: the format does not say, or it has none."""

    format: str
    """"thalia", "safetensors", "thalia-0.1", "mckp" or "mst"."""
    version: str | None
    """Of the format."""
    side_file: bool
    """It holds tables and texts of a checkpoint, and no payloads."""
    disk_bytes: int
    file_bytes: int
    """Of a .thalia file without frames around it and without debris; of a side file, those of its
    checkpoint; else disk_bytes."""
    dead_bytes: int
    """Of these, unused since an append; compact() gives them back."""
    debris_bytes: int
    """Behind the end, left by an append that was interrupted."""
    wrapper: Wrapper | None
    regions: int | None
    connections: int | None
    tensors: int | None
    """Matrices of connections included. This and the sums down to `codecs` are None of a delta of
    version 0.1, whose pickle is never opened."""
    parameters: int | None
    """Elements of tensors that are learned; of sparse ones those stored."""
    logical_bytes: int | None
    value_bytes: int | None
    """Of all tensors in memory, once restored; None of a delta that has not all of this itself."""
    stored_bytes: int | None
    dtypes: tuple[DTypeTotal, ...] | None
    """Those that there are, most elements first."""
    codecs: tuple[str, ...] | None
    quantized_tensors: int | None
    lossy_generation: int | None
    """How often weights were rounded to codes."""
    max_lossy_generations: int | None
    total_neurons: int | None
    total_synapses: int | None
    training_steps: int | None
    """Done when it was saved: as the header says, or where that says 0 or nothing, the metadata."""
    training_steps_member: str | None
    """The member of the metadata that training_steps comes from, as "trainer.step"."""
    epoch: float | None
    """As the metadata say."""
    timestamp: int | None
    """When it was saved, in seconds since 1970."""
    generation: int | None
    """1 after a save, one more with each append."""
    file_uuid: str | None
    """32 hexadecimal digits."""
    checksum_type: str
    checksum: str | None
    """The file's identity, in hexadecimal."""
    content_hash: str | None
    """Of a .mckp checkpoint as it is restored."""
    delta_base: DeltaBase | None
    warnings: tuple[str, ...]
    """What is odd about a file of version 0.1 and was read all the same."""
    growth_history: tuple[Any, ...] | None
    """Of the metadata, an object an event in one shape; None where they have one of another kind."""
    metadata: dict[str, Any] | None

    @property
    def is_delta(self) -> bool:
        """It needs the file that delta_base names."""
        return self.delta_base is not None


def info(path: Path, *, access: Access = "mapped") -> FileInfo:
    """The facts of a checkpoint of any format, as `thalia info` tells them.

    No payload is read, but for files of version 0.1; so this is fast for any size, and cannot tell
    whether payloads are whole: verify() does. Bases of a delta are not opened.

    access: "copied" to read what is needed with checked reads, not through a mapping.
    Raises IoError, FormatError, IntegrityError, UnsupportedError.
    """
    facts = _core.info(path, access)
    sums = facts.pop("sums")
    for name in (
        "tensors",
        "parameters",
        "logical_bytes",
        "value_bytes",
        "stored_bytes",
        "quantized_tensors",
        "lossy_generation",
        "max_lossy_generations",
    ):
        facts[name] = None if sums is None else sums[name]
    facts["dtypes"] = facts["codecs"] = None
    if sums is not None:
        totals = [DTypeTotal(**total) for total in sums["dtypes"]]
        facts["dtypes"] = tuple(sorted(totals, key=lambda total: -total.elements))
        facts["codecs"] = tuple(sums["codecs"])
    metadata = facts.pop("metadata_json")
    facts["metadata"] = json.loads(metadata) if metadata else None
    growth = facts.pop("growth_json")
    facts["growth_history"] = tuple(json.loads(growth)) if growth else None
    steps, facts["training_steps_member"], facts["epoch"] = _progress(facts["metadata"])
    # A header that nobody told of steps says 0; metadata may know better.
    if facts["training_steps"] or steps is None:
        facts["training_steps_member"] = None
    else:
        facts["training_steps"] = steps
    for name, cls in (("wrapper", Wrapper), ("delta_base", DeltaBase)):
        if facts[name] is not None:
            facts[name] = cls(**facts[name])
    facts["warnings"] = tuple(facts["warnings"])
    return FileInfo(**facts)


# The first one counts.
_STEPS = ("training_steps", "training_step", "global_step", "step", "ss_steps")
_EPOCHS = ("epoch", "ss_epoch")


def _progress(metadata: Any) -> tuple[int | None, str | None, float | None]:
    """Steps, the member that says so, and epoch; safetensors has texts in place of numbers."""
    steps: int | None = None
    member: str | None = None
    epoch: float | None = None
    for prefix, values in _objects(metadata):
        for name in _STEPS:
            if steps is None and (steps := _count(values.get(name))) is not None:
                member = prefix + name
        for name in _EPOCHS:
            if epoch is None:
                epoch = _number(values.get(name))
    return steps, member, epoch


def _objects(metadata: Any) -> list[tuple[str, dict[str, Any]]]:
    """The metadata and each member that is an object, or the text of one."""
    if not isinstance(metadata, dict):
        return []
    found = [("", metadata)]
    for name, value in metadata.items():
        if isinstance(value, str) and value.startswith("{"):
            try:
                value = json.loads(value)
            except ValueError:
                continue
        if isinstance(value, dict):
            found.append((name + ".", value))
    return found


def _count(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", value, re.I):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < 1e308 else math.inf
        return number if math.isfinite(number) and number >= 0 else None
    return None
