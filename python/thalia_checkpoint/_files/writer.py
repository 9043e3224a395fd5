"""Writing files: a context manager whose file appears whole, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from .. import _core, _log
from .._core import SaveResult as SaveResult
from .._keywords import suggests
from .._missing import not_found
from .._progress import Progress, callback
from .._support import OpenHere, collector_paused
from .._types import Path
from ..errors import UsageError
from .elements import Elements, elements
from .source import CooArrays, CsrArrays


class FileOptions(TypedDict, total=False):
    """SaveOptions of what has arguments of its own for the compression, and for what is there already."""

    chunk_bytes: int | None
    """Raw bytes of a compressed chunk, 4 KiB to 1 GiB; 1 MiB."""
    checksum: Literal["block_tree", "sha256", "crc32", "none"] | None
    """What readers check bytes against; a tree of the hashes of blocks."""
    leaves: Literal["xxh3_128", "sha256"] | None
    """What hashes the blocks of the tree."""
    sha256: bool | None
    """Also NAME.sha256 next to the file."""
    timestamp: int | None
    """Seconds since 1970; now."""
    durability: Literal["full", "data", "none"] | None
    """"full": the file outlives a power loss once the save has returned."""
    follow_link: bool | None
    """False: a symbolic link at the path is refused, and not followed to the file that is written."""
    reproducible: bool | None
    """The same input gives the same bytes."""
    io: Literal["automatic", "buffered", "direct"] | None
    """Through the page cache or past it; by itself what suits the file."""
    queue_depth: int | None
    """Direct writes in flight, 1 to 1024; 16."""
    threads: int | None
    """That hash, compress and write; one a core."""
    memory_bytes: int | None
    """Bytes of the buffers; 128 MiB."""
    progress: Progress | None
    """Called with bytes done and in all, from a thread of the save. What it raises ends the save.
    True shows a bar, with tqdm."""


class PlainOptions(FileOptions, total=False):
    """SaveOptions of what has arguments of its own for the compression."""

    replace: bool | None
    """False: a file that is there already stays, and saving raises ExistsError."""


class SaveOptions(PlainOptions, total=False):
    """Keyword arguments of everything that saves."""

    compression: Literal["none", "plane_entropy", "packed_exponents", "zstd", "lz4", "auto"] | None
    """Without it tensors are stored as they are, to be mapped. "plane_entropy" is made for weights;
    "auto" compresses if that makes the save faster."""
    compression_level: int | None
    """1 to 22 of zstd, 1 to 12 of lz4."""


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """SaveOptions of saves to come. Raises what the first of them would: TypeError for a name that is not one of them,
    UsageError for a value."""
    _core.check_save_options({name: value for name, value in options.items() if name != "progress"})
    return dict(options)


@suggests
class Writer(OpenHere):
    """Declares regions and tensors, and writes them in one go.

    As a context manager it commits at the end, and leaves no trace where the block raises. The
    file that was at the path stays until the new one is whole. Arrays are borrowed until then:
    change them only afterwards. One call at a time: what another thread, or a callback of progress,
    calls meanwhile raises UsageError. So does commit() in a forked child: the file is the parent's.

        with Writer("model.thalia") as writer:
            writer.add("encoder/weight", weight)
            writer.metadata = {"step": 100}
    """

    _instead = "make one in the worker"

    def __init__(self, path: Path | int, **options: Unpack[SaveOptions]) -> None:
        """path: or the descriptor of an empty file that is open for reading and writing, such as one in
            memory. It stays open, gets no name and is not synced; after an error it holds anything.
        options: those of SaveOptions. Raises IoError, UsageError.
        """
        target = f"descriptor {path}" if isinstance(path, int) else os.fspath(path)
        shown = callback(options.get("progress"), f"saving {target}")
        self._begin(_core.Writer(path, {**options, "progress": shown}), path)

    def _begin(self, raw: _core.Writer, path: Path | int | None = None) -> None:
        self._raw = raw
        self._path = path
        self._regions: dict[str, int] = {}
        self.metadata: Mapping[str, Any] | str | None = None
        """A JSON object, or its text; set it at any time before the commit, which raises TypeError or
        UsageError if it is not one."""
        self.training_steps: int | None = None
        """For the header; set it at any time before the commit."""
        self.result: SaveResult | None = None
        """After the commit."""

    def region(
        self,
        name: str,
        *,
        n_neurons: int = 0,
        n_inputs: int = 0,
        neuron_type: str = "none",
        homeostatic_updated: int = 0,
        config: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Declares a region. Those that are not declared come into being with their first tensor.

        n_neurons, n_inputs: how many neurons it has, and inputs to each of them.
        neuron_type: "lif", "conductance_lif" or "none".
        homeostatic_updated: when its homeostatic state last changed, in seconds since 1970.
        config, metadata: what JSON can hold.
        Raises TypeError for what JSON cannot hold; UsageError for a name that is there already, or
        another neuron_type.
        """
        self._regions[name] = self._raw.add_region(
            name,
            n_neurons,
            n_inputs,
            neuron_type,
            json.dumps(config) if config else "{}",
            "" if metadata is None else json.dumps(metadata),
            homeostatic_updated,
        )

    def add(
        self,
        name: str,
        array: Any,
        *,
        region: str | None = None,
        role: str | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Declares a tensor.

        name: "region/name", or with `region` its own name. A name without a region goes where its
            dots say, as a conversion from safetensors puts it: "layers.0.weight" to "layers.0".
        array: anything numpy takes, with the buffer protocol, or with __dlpack__ in memory of the
            CPU; a tensor of an open file, which is stored in its own element type. One that is not
            contiguous and little-endian is copied. CsrArrays and CooArrays need `shape`.
        role: "weights", "bias", "optimizer", …; by default what the name tells.

        Raises UsageError for a name that is there already, and after the commit; TypeError for
        sparse arrays without a shape; UnsupportedError for a dtype that no file holds, and for
        memory of another device.
        """
        region, name = _placed(region, name)
        if isinstance(array, CsrArrays | CooArrays):
            self._add_sparse(region, name, array, shape, role)
            return
        self._add_bytes(region, name, *elements(f"{region}/{name}", array), role)

    def add_bytes(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        data: Any,
        *,
        region: str | None = None,
        role: str | None = None,
    ) -> None:
        """Declares a tensor by its elements as the file has them: any contiguous buffer.

        dtype is the format's name, as "bf16". Raises UsageError unless the bytes are as many as
        dtype and shape ask for.
        """
        region, name = _placed(region, name)
        self._add_bytes(region, name, dtype, shape, data, role)

    def add_tensors(
        self, tensors: Iterable[tuple[str, str, tuple[int, ...], Any]], roles: Mapping[str, str] | None = None
    ) -> None:
        """Declares many as add_bytes() does one: name, dtype, shape and data of each, where its name's dots say.

        roles: by name, of those whose names do not tell.
        """
        with collector_paused():
            self._raw.add_tensors(list(tensors), self._regions, dict(roles or {}))

    def connect(self, source: str, target: str, weights: Any, delays: Any = None) -> None:
        """Declares a connection between two declared regions.

        weights, delays: arrays as add() takes them, delays as a rule of the weights' shape.
        Raises NotFoundError for a region that was not declared, UsageError for a second connection
        of the same two; as add().
        """
        for region in (source, target):
            if region not in self._regions:
                raise not_found(f"no region {region!r} was declared", region, self._regions, region=region)
        name = f"{source} to {target}"
        matrices = (
            elements(f"{name}, weights", weights),
            None if delays is None else elements(f"{name}, delays", delays),
        )
        more = matrices[1] or Elements(matrices[0].dtype, (), None)
        self._raw.add_connection(source, target, *matrices[0], *more)

    def commit(self) -> SaveResult:
        """Writes everything, and puts the file in its place. Ctrl-C ends it and leaves the old one.

        Raises IoError with the call that failed; what `progress` raised; UsageError after a commit.
        """
        self._finish()
        self.result = _log.done("saved", self._path, self._raw.commit())
        return self.result

    def abandon(self) -> None:
        """Ends it without a file, and leaves no trace. Does nothing after a commit.

        Raises UsageError while another call runs."""
        self._raw.abandon()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
        elif self._raw.is_open:
            self.commit()

    def __repr__(self) -> str:
        if self.result is not None:
            return f"<{type(self).__name__}, committed: {self.result.file_bytes} bytes>"
        try:
            state = "not committed" if self._raw.is_open else "abandoned"
        except UsageError:
            state = "in use"  # of a thread that commits it, or of the parent of this process
        return f"<{type(self).__name__}, {state}: {len(self._regions)} regions>"

    def _finish(self) -> None:
        if self.metadata is not None:
            text = self.metadata if isinstance(self.metadata, str) else json.dumps(self.metadata)
            self._raw.set_metadata(text)
        if self.training_steps is not None:
            self._raw.set_training_steps(self.training_steps)

    def _region(self, name: str) -> int:
        if name not in self._regions:
            self.region(name)
        return self._regions[name]

    def _add_bytes(
        self,
        region: str,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        data: Any,
        role: str | None,
    ) -> None:
        role = role or _core.role_of_name(name, len(shape))
        self._raw.add_tensor(self._region(region), name, dtype, shape, role, data)

    def _add_sparse(
        self,
        region: str,
        name: str,
        arrays: CsrArrays | CooArrays,
        shape: tuple[int, ...] | None,
        role: str | None,
    ) -> None:
        if shape is None:
            raise TypeError("sparse arrays need the tensor's shape")
        dtype, _, values = elements(f"{region}/{name}, values", arrays.values)
        indices = arrays.column_indices if isinstance(arrays, CsrArrays) else arrays.indices
        wide = np.dtype(indices.dtype).itemsize == 8
        index = np.dtype("<u8" if wide else "<u4")
        pointers = np.ascontiguousarray(arrays.row_pointers, index) if isinstance(arrays, CsrArrays) else None
        self._raw.add_sparse(
            self._region(region),
            name,
            dtype,
            shape,
            role or _core.role_of_name(name, len(shape)),
            wide,
            pointers,
            np.ascontiguousarray(indices, index),
            values,
        )


def _placed(region: str | None, name: str) -> tuple[str, str]:
    """Where a tensor goes, and its own name there."""
    if region is not None:
        return region, name
    before, slash, rest = name.partition("/")
    return (before, rest) if slash else (_core.region_for_name(name), name)
