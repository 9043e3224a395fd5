"""A brain's state as loading gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from .. import _core
from .._html import of_rows
from .._keywords import suggests
from ._facts import Beside, RegionFacts


@suggests
class BrainState(dict[str, Any]):
    """A state that was loaded: the dictionary that was saved, with what the file says beside it.

    Saved again, it keeps that: `metadata`, what is said of each region, and the connections.
    """

    def __init__(
        self,
        members: Mapping[str, Any],
        metadata: dict[str, Any],
        training_steps: int,
        beside: Beside | None = None,
    ) -> None:
        super().__init__(members)
        self.metadata = metadata
        """That of the file."""
        self.training_steps = training_steps
        """The file's; 0 if it does not say."""
        self._beside = Beside(metadata) if beside is None else beside

    @property
    def beside(self) -> Beside:
        """All that its file says beside it, for those that save it."""
        return self._beside

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The projections between regions: source, target, weights and delays, or None, of each. The
        state has the same list as its member "connections", unless that is a member of its own."""
        return self._beside.connections

    @property
    def regions(self) -> Mapping[str, Any]:
        """The regions of the state, by name; empty if it has none."""
        found: Mapping[str, Any] = self.get("regions", {})
        return found

    @property
    def pathways(self) -> Mapping[str, Any]:
        """The pathways of the state, by name; empty if it has none."""
        found: Mapping[str, Any] = self.get("pathways", {})
        return found

    def _repr_html_(self) -> str:
        parts = {**self.regions, **self.pathways}
        title = f"BrainState: {len(self.regions)} regions, {len(self.pathways)} pathways, {self.training_steps} steps"
        return _of_members(title, parts or self)


@suggests
class BrainRegion(dict[str, Any]):
    """A region, or a pathway, of a state that was loaded: its components by name.

    Under whichever name, and in whichever state it is saved, it keeps what its file says of it.
    """

    def __init__(self, members: Mapping[str, Any] | None = None, facts: RegionFacts | None = None) -> None:
        super().__init__(members or {})
        self.facts: RegionFacts = RegionFacts() if facts is None else facts
        """What the file says of the region beside its state."""

    def _repr_html_(self) -> str:
        return _of_members(f"BrainRegion: {self.facts.n_neurons} neurons", self)


def _of_members(title: str, members: Mapping[str, Any]) -> str:
    """Arrays are counted, and regions that were not read yet stay so."""
    rows: list[tuple[str, object, str]] = []
    for name, member in members.items():
        if isinstance(member, LazyRegion) and not member.is_loaded:
            rows.append((name, "not read yet", ""))
            continue
        sizes = list(_sizes(member))
        rows.append((name, len(sizes) or type(member).__name__, _core.human_bytes(sum(sizes)) if sizes else ""))
    return of_rows(title, ("name", "tensors", "size"), rows)


def _sizes(value: Any, depth: int = 8) -> Iterator[int]:
    """The bytes of each array in it."""
    if hasattr(type(value), "dtype"):
        yield int(value.nbytes)
    elif depth and isinstance(value, Mapping | list | tuple):
        for member in value.values() if isinstance(value, Mapping) else value:
            yield from _sizes(member, depth - 1)


class LazyRegion(MutableMapping[str, Any]):
    """A BrainRegion that is read when it is first touched, from any thread, once. It keeps the file open
    until then. That touch raises IntegrityError for damage, FormatError for a region beyond max_bytes.
    """

    def __init__(self, read: Callable[[], BrainRegion], facts: Callable[[], RegionFacts]) -> None:
        self._read: Callable[[], BrainRegion] | None = read
        self._facts = facts
        self._members = BrainRegion()
        self._lock = _core.ThreadLock()

    @property
    def facts(self) -> RegionFacts:
        """What the file says of the region beside its state; no tensor is read for it."""
        return self._facts()

    @property
    def is_loaded(self) -> bool:
        """Whether it was read."""
        return self._read is None

    def _there(self) -> BrainRegion:
        if self._read is not None:
            with self._lock:
                if self._read is not None:
                    self._members = self._read()
                    self._read = None
        return self._members

    def __getitem__(self, name: str) -> Any:
        return self._there()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._there()[name] = value

    def __delitem__(self, name: str) -> None:
        del self._there()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._there())

    def __len__(self) -> int:
        return len(self._there())

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy was read: a file can be neither copied nor sent to another process.
        return BrainRegion, (dict(self._there()), self.facts)

    def __repr__(self) -> str:
        return repr(self._members) if self.is_loaded else "<LazyRegion, not read yet>"
