"""What a file says of a brain beside its state, and who keeps it until the state is saved again."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .. import _core
from .._keywords import suggests
from ._metadata import bad_argument, to_json

#: Paths of tensors in a region, and their shapes.
Shapes = dict[tuple[str, ...], tuple[int, ...]]
#: The region of the brain-wide state.
BRAIN = "brain:state"
#: Members of regions' metadata that are the format's, the second of that region alone.
STATE = "thalia_state"
CONNECTIONS = "connections"


@suggests
@dataclass
class RegionFacts:
    """What a file says of a region beside its state, docs/format/states.md. All of it may be changed.

    Where the tensors of a state that was loaded have grown since then, along their axes of neurons
    or inputs, and nobody has changed the numbers here, these follow.
    """

    n_neurons: int = 0
    n_inputs: int = 0
    neuron_type: str = "none"
    """"lif", "conductance_lif" or "none"."""
    homeostatic_updated: int = 0
    """Seconds since 1970."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The application's, such as `axes`."""
    _name: str | None = field(default=None, repr=False, compare=False)
    _loaded: _Loaded | None = field(default=None, repr=False, compare=False)

    @property
    def loaded_as(self) -> str | None:
        """The region's name in the file."""
        return self._name

    def reported_metadata(self, name: str) -> dict[str, Any]:
        """Raises UsageError for what is no JSON, and for names that are the format's."""
        for own in (STATE, CONNECTIONS):
            if own in self.metadata and (own == STATE or name == BRAIN):
                raise bad_argument(f"region {name!r}: metadata", own, "another name")
        plain: dict[str, Any] = to_json(self.metadata, f"region {name!r}: metadata")
        return plain

    def read(self, members: Mapping[str, Any]) -> None:
        """To be called with the components as they were loaded."""
        self._loaded = _Loaded(shapes_of(members), self.n_neurons, self.n_inputs)

    def counts(self, members: Mapping[str, Any]) -> tuple[int, int]:
        """Neurons, and inputs of each, of the state as it is now. Saving refuses shapes that contradict these."""
        shapes = shapes_of(members)
        neurons, inputs, loaded = self.n_neurons, self.n_inputs, self._loaded
        if loaded is None:
            neurons = neurons or neurons_of(shapes)
        elif loaded.shapes != shapes:
            if neurons == loaded.n_neurons:
                neurons = _grown_neurons(self.metadata.get("axes"), loaded, shapes)
            if inputs == loaded.n_inputs and inputs:
                inputs += _grown_inputs(self.metadata.get("axes"), loaded, shapes)
        return neurons, max(inputs, 0)


@dataclass(frozen=True)
class _Loaded:
    """A region as it was in the file."""

    shapes: Shapes
    n_neurons: int
    n_inputs: int


def facts_of(name: str, reported: dict[str, Any]) -> RegionFacts:
    """name: in the file. reported: what the library says about the region."""
    return RegionFacts(**reported, _name=name)


def shapes_of(members: Any, path: tuple[str, ...] = ()) -> Shapes:
    """The shapes of all arrays and tensors in dictionaries, and in dictionaries within these."""
    if isinstance(members, Mapping):
        return {p: s for key, value in members.items() for p, s in shapes_of(value, (*path, str(key))).items()}
    shape = getattr(members, "shape", None)
    return {} if shape is None else {path: tuple(shape)}


def neurons_of(shapes: Shapes) -> int:
    """The neurons of a region, if its tensors agree about it; else 0, from which nothing follows for shapes."""
    membrane = shapes.get(("neuron_state", "membrane")) or shapes.get(("region_state", "membrane"))
    if not membrane:
        return 0
    count = 1
    for extent in membrane:
        count *= extent
    # A guess has to be one that saving takes.
    dotted = {".".join(path): shape for path, shape in shapes.items()}
    return count if _core.shapes_fit(count, dotted) else 0


def _axes_of(axes: Any, shapes: Shapes) -> Iterator[tuple[tuple[str, ...], int, tuple[str, str, int]]]:
    """Path, number and meaning of each axis that the metadata names."""
    if not isinstance(axes, dict):
        return
    paths = {".".join(path): path for path in shapes}
    for name, texts in axes.items():
        path = paths.get(name)
        if path is not None and isinstance(texts, list) and len(texts) == len(shapes[path]):
            yield from ((path, i, _core.parse_axis(str(text))) for i, text in enumerate(texts))


def _grown_neurons(axes: Any, loaded: _Loaded, shapes: Shapes) -> int:
    """How many there are where the state was changed; 0 where its tensors do not agree."""
    reported: dict[tuple[str, str], set[int]] = {}
    for path, i, (kind, name, neurons_per_element) in _axes_of(axes, shapes):
        if kind in ("neurons", "population"):
            reported.setdefault((kind, name), set()).add(shapes[path][i] * neurons_per_element)
    if reported:
        return sum(map(max, reported.values())) if all(len(found) == 1 for found in reported.values()) else 0
    before, now = neurons_of(loaded.shapes), neurons_of(shapes)
    if before and now:
        return max(loaded.n_neurons + now - before, 0) if loaded.n_neurons else now if now != before else 0
    if now and not loaded.n_neurons:
        return now
    old = loaded.n_neurons
    there = [path for path, shape in loaded.shapes.items() if old and shape[:1] == (old,) and shapes.get(path)]
    new = {shapes[path][0] for path in there}
    return old if not new else new.pop() if len(new) == 1 else 0


def _grown_inputs(axes: Any, loaded: _Loaded, shapes: Shapes) -> int:
    """How many more there are."""
    more: dict[str, int] = {}
    named = {path: (i, name) for path, i, (kind, name, _) in _axes_of(axes, shapes) if kind == "source"}
    for path, now in shapes.items():
        before = loaded.shapes.get(path)
        if path[0] != "weights" or before is None or len(before) != len(now):
            continue
        if path in named:
            i, source = named[path]
            more[source] = now[i] - before[i]
        # A matrix of neurons and neurons has no inputs.
        elif len(now) == 2 and before[0] == loaded.n_neurons and now[1] != before[1] and before[0] != before[1]:
            more[".".join(path)] = now[1] - before[1]
    return sum(more.values())


class HasFacts(Protocol):
    """A region that may not be read yet."""

    @property
    def facts(self) -> RegionFacts: ...


class Beside:
    """What a file says beside a state: of its regions by their names, and of the whole."""

    def __init__(
        self,
        metadata: dict[str, Any],
        regions: Mapping[str, RegionFacts | HasFacts] | None = None,
        own: RegionFacts | None = None,
        connections: list[dict[str, Any]] | None = None,
    ) -> None:
        self.metadata = metadata
        self._regions = dict(regions or {})
        self.own = own
        """The facts of the brain-wide state."""
        self.connections: list[dict[str, Any]] = [] if connections is None else connections

    def region(self, name: str) -> RegionFacts | None:
        """What it said of the region of that name, if there was one."""
        found = self._regions.get(name)
        return found if found is None or isinstance(found, RegionFacts) else found.facts


_kept: dict[int, tuple[weakref.ref[Any], Beside]] = {}


def remember(brain: Any, beside: Beside) -> None:
    """That a brain has loaded what a file holds, until that is gone: its state, when it is saved, is its own."""
    key = id(brain)
    try:
        _kept[key] = weakref.ref(brain, lambda _: _kept.pop(key, None)), beside
    except TypeError:
        pass  # of a class without weak references


def remembered(brain: Any) -> Beside | None:
    """What remember() was told last."""
    ref, beside = _kept.get(id(brain), (None, None))
    return beside if ref is not None and ref() is brain else None
