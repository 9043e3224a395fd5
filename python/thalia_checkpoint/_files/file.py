"""Open files: mappings of names to regions and tensors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, cast

import numpy.typing as npt

from .. import _core, _html
from .._keywords import suggests
from .._missing import ByName, not_found
from .._support import ClosedAtEnd, OpenHere, from_json
from ..errors import IntegrityError, NotFoundError, UsageError, make_error
from .tensor import Tensor


def closed() -> Exception:
    """What a closed file of any format raises, whatever it is asked."""
    return make_error(UsageError, "the file was closed", "wrong_state")


class Connection(NamedTuple):
    """A projection from a region to another."""

    source: str
    target: str
    weights: Tensor
    delays: Tensor | None
    """None if it has none."""


class Tensors(OpenHere, ByName[Tensor]):
    """All tensors of a file by one flat name each, in the order of the file.

    That is the tensor's own name, or REGION.NAME for each of several that share theirs, as a
    conversion to safetensors names them; REGION/NAME if that is another tensor's name. A name
    that does not exist raises NotFoundError, a KeyError.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        uses = Counter(tensor.name for tensor in tensors)
        self._tensors: dict[str, Tensor] = {}
        for tensor in tensors:
            name = tensor.name
            if uses[name] > 1 and tensor.region:
                name = f"{tensor.region}.{name}"
                # No other tensor's own name.
                name = tensor.path if name in uses or name in self._tensors else name
            self._tensors[name] = tensor

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise not_found(f"{name}: no such tensor", name, self, tensor=name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    # As Mapping has them, and several times as fast.
    def items(self) -> ItemsView[str, Tensor]:
        return self._tensors.items()

    def values(self) -> ValuesView[Tensor]:
        return self._tensors.values()

    def __repr__(self) -> str:
        return f"<Tensors: {len(self)} tensors>"

    def _repr_html_(self) -> str:
        shown = list(islice(self, _html.ROWS))
        return _html.of_tensors(f"{len(self)} tensors", map(self.__getitem__, shown), len(self), named=shown)


class Region(OpenHere, ByName[Tensor]):
    """The tensors of one region by their names, in the order of these.

    It keeps the file mapped, also when the file object is closed. An unknown name raises
    NotFoundError, a KeyError; what the file says of the region, FormatError or IntegrityError if
    that is damaged.
    """

    def __init__(self, raw: _core.FileRegion) -> None:
        self._raw = raw

    @property
    def name(self) -> str:
        """Its name in the file."""
        return self._raw.name

    @property
    def n_neurons(self) -> int:
        """Neurons, as it was declared; 0 where nobody said."""
        return self._raw.n_neurons

    @property
    def n_inputs(self) -> int:
        """Inputs of a neuron, as it was declared; 0 where nobody said."""
        return self._raw.n_inputs

    @property
    def neuron_type(self) -> str:
        """The model of its neurons: "lif", "conductance_lif" or "none"."""
        return self._raw.neuron_type

    @property
    def homeostatic_updated(self) -> int:
        """When its homeostatic state last changed, in seconds since 1970; 0 where nobody said."""
        return self._raw.homeostatic_updated

    @property
    def config(self) -> dict[str, Any]:
        """The JSON object that it was declared with; a copy each time."""
        return _object(self._raw.config_json, f"{self.name}: config")

    @property
    def metadata(self) -> dict[str, Any]:
        """The JSON object that was saved with it; a copy each time."""
        return _object(self._raw.metadata_json, f"{self.name}: metadata")

    def prefetch(self) -> None:
        """Asks the system to read the region ahead, and returns at once."""
        self._raw.prefetch()

    def populate(self) -> None:
        """Reads the region into memory, and returns when it is there. Verifies nothing. Raises IoError."""
        self._raw.populate()

    def release(self) -> None:
        """Gives its memory back to the system; it is read again when touched."""
        self._raw.release()

    def __getitem__(self, name: str) -> Tensor:
        found = self._raw.find(name)
        if found is None:
            raise not_found(f"region {self.name!r} has no tensor {name!r}", name, self, region=self.name, tensor=name)
        return Tensor(found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._raw.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        for i in range(len(self._raw)):
            yield self._raw.tensor(i).name

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"<Region {self.name!r}: {len(self)} tensors>"

    def _repr_html_(self) -> str:
        tensors = (Tensor(self._raw.tensor(i)) for i in range(len(self)))
        return _html.of_tensors(f"Region {self.name}: {len(self)} tensors", tensors, len(self))


@suggests
class File(ClosedAtEnd, OpenHere, Mapping[str, Region]):
    """An open .thalia file or delta: regions by name.

    The tensors of a delta are those of the state that it stands for; they are read through the
    files that it is based on. `file[name]` also takes a tensor: by "region/name", or by its own
    name where one region alone has it; else it raises NotFoundError, a KeyError. Any number of
    threads may use one. After close() everything raises UsageError; regions, tensors and arrays that
    were read before stay valid.
    """

    def __init__(self, raw: _core.File) -> None:
        self._open: _core.File | None = raw
        self._tensors: Tensors | None = None
        self._lookups = 0

    @property
    def _raw(self) -> _core.File:
        if self._open is None:
            raise closed()
        return self._open

    @property
    def path(self) -> str:
        """The path that it was opened by."""
        return os.fspath(self._raw.path)

    @property
    def is_delta(self) -> bool:
        """Whether it stores the difference to another file."""
        return self._raw.is_delta

    @property
    def file_bytes(self) -> int:
        """Bytes of the file, without frames around it."""
        return self._raw.file_bytes

    @property
    def metadata(self) -> dict[str, Any]:
        """The JSON object that was saved with it; a copy each time."""
        return _object(self._raw.metadata_json, self.path)

    @property
    def header(self) -> dict[str, Any]:
        """timestamp (seconds since 1970), training_steps, total_neurons, total_synapses, generation
        and file_uuid."""
        return self._raw.header

    @property
    def tensors(self) -> Tensors:
        """All tensors but those of connections, by flat names."""
        if self._tensors is None:
            self._tensors = Tensors([Tensor(found) for found in self._raw.tensors])
        return self._tensors

    @property
    def connections(self) -> list[Connection]:
        """All connections between regions, in the order of the file."""
        return [
            Connection(source, target, Tensor(weights), Tensor(delays) if delays else None)
            for source, target, weights, delays in self._raw.connections
        ]

    def region(self, name: str) -> Region:
        """The region of that name. Raises NotFoundError, a KeyError."""
        found = self._raw.find_region(name)
        if found is None:
            raise not_found(f"{self.path}: no region {name!r}", name, self, region=name)
        return Region(found)

    def tensor(self, name: str) -> Tensor:
        """A tensor by "region/name", or its own name where one region alone has it. Raises NotFoundError."""
        # The file is searched region by region. Who asks often is better off with a dictionary.
        self._lookups += 1
        if self._lookups > 32 and name in self.tensors and self.tensors[name].name == name:
            return self.tensors[name]
        return Tensor(self._raw.tensor(name))

    def stream(
        self,
        names: Iterable[str] | None = None,
        *,
        order: Literal["as_asked", "file", "as_completed"] = "as_asked",
        threads: int = 0,
        memory_bytes: int | None = None,
    ) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Tensors as fast as the disk gives them, by name: read ahead past the page cache, checked
        and decoded on all cores, in memory of their own.

        names: as file[name] takes them, or of file.tensors; by default all of these.
        memory_bytes: of tensors that are read ahead; 128 MiB, or the largest one.
        Raises NotFoundError, UsageError for a sparse tensor, and what reading them raises.
        """
        wanted = list(self.tensors) if names is None else list(names)
        found = [self.tensors[n] if n in self.tensors else self.tensor(n) for n in wanted]
        for tensor in found:
            tensor.need_dense()
        return _streamed(self.open_stream(found, order, threads, memory_bytes), wanted, found)

    def open_stream(
        self,
        tensors: Sequence[Tensor],
        order: str,
        threads: int,
        memory_bytes: int | None,
        destinations: list[npt.NDArray[Any] | None] | None = None,
    ) -> _core.Stream:
        """The bytes of its dense tensors, by their places among these, as stream() reads them.

        destinations: for each tensor, and none of them twice, a contiguous array of exactly its bytes,
            which next() gives None for, or None for memory of the stream. What next() has not reported,
            also if it raises, is not checked.
        """
        sources = [cast(_core.FileTensor, tensor._source) for tensor in tensors]
        return _core.Stream.open(self._raw, sources, order, threads, memory_bytes, destinations)

    def verify_all(self) -> None:
        """Checks every byte against the checksum now. Raises IntegrityError at the first damage. Ctrl-C ends it."""
        self._raw.verify_all()

    def verify_ahead(self) -> None:
        """Checks what lies in the file as it is all at once, which a tensor after the other takes longer for.
        Damage is reported when a tensor that has it is read."""
        if self._raw.has_block_tree and all(tensor.is_mapped for tensor in self.tensors.values()):
            with suppress(IntegrityError):
                self._raw.verify_all()

    def __getitem__(self, name: str) -> Any:
        found = self._raw.find_region(name)
        if found is not None:
            return Region(found)
        try:
            return self.tensor(name)
        except NotFoundError:
            if "/" in name:
                raise
        names = chain(self, (tensor.name for tensor in self.tensors.values()))
        raise not_found(f"{self.path}: no such region or tensor: {name!r}", name, names, path=self.path, tensor=name)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self[name]
        except NotFoundError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        for i in range(len(self._raw)):
            yield self._raw.region(i).name

    def __len__(self) -> int:
        return len(self._raw)

    def close(self) -> None:
        """Lets go of the file. Arrays made of it stay valid, and keep it mapped."""
        self._open = None
        self._tensors = None

    def __repr__(self) -> str:
        if self._open is None:
            return "<File, closed>"
        return f"<File {self.path!r}: {self._raw.tensor_count} tensors in {len(self)} regions>"

    def _repr_html_(self) -> str:
        raw = self._open
        if raw is None:
            return _html.of_repr(self)
        kind = "delta" if raw.is_delta else "file"
        title = (
            f"{self.path}: a .thalia {kind} of {_core.human_bytes(raw.file_bytes)}, "
            f"{raw.tensor_count} tensors in {len(raw)} regions"
        )
        regions = (raw.region(i) for i in range(len(raw)))
        tensors = (Tensor(region.tensor(i)) for region in regions for i in range(len(region)))
        of_connections = sum(2 if delays else 1 for _, _, _, delays in raw.connections)
        return _html.of_tensors(title, tensors, raw.tensor_count - of_connections)


def _streamed(stream: _core.Stream, names: list[str], tensors: list[Tensor]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    while (arrived := stream.next()) is not None:
        index, data = arrived
        assert data is not None  # no destinations
        yield names[index], tensors[index].array_of(data)


def _object(text: str, where: str) -> dict[str, Any]:
    found: dict[str, Any] = from_json(text, where) if text else {}
    return found
