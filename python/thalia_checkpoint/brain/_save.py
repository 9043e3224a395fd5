"""A brain's state as the library saves it: whole, or as a delta."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import _core
from .._leaves import is_text
from .._support import paths
from .._types import Path
from ..errors import UsageError, make_error
from . import _metadata
from ._arrays import borrowed, is_torch
from ._connections import Wire, check_fit, connections_of
from ._facts import BRAIN, Beside, RegionFacts, remembered
from ._policy import PrecisionPolicy, policy_text
from ._state import BrainRegion, BrainState, LazyRegion
from ._tree import Kinds, RegionEncoder

PATHWAY = "pathway:"


class Plan(NamedTuple):
    """What a file gets. Arrays are borrowed."""

    brain: _core.Brain
    options: _core.BrainSaveOptions


class Region(NamedTuple):
    """A region, or the brain-wide state, on its way into a file."""

    name: str
    members: Mapping[str, Any]
    node: dict[str, Any]
    n_neurons: int
    n_inputs: int
    facts: RegionFacts
    states: dict[int, tuple[Any, Any]]
    """Those of objects in it, as RegionEncoder has them."""


class Encoded(NamedTuple):
    """A state as trees of the library."""

    regions: list[Region]
    own: Region
    wires: list[Wire]
    wires_are_members: bool
    kinds: Kinds
    in_regions: bool
    """Its regions are members of `regions` and `pathways`."""
    steps: int

    def core(self, metadata: dict[str, Any]) -> _core.Brain:
        """The state in the library; arrays are borrowed. Once: the trees go there."""
        core = _core.Brain()
        for region in self.regions:
            is_pathway = region.name.startswith(PATHWAY)
            core.add_region(
                is_pathway,
                region.name.removeprefix(PATHWAY) if is_pathway else region.name,
                self.kinds.unmarked(region.node),
                region.facts.reported_metadata(region.name),
                region.n_neurons,
                region.n_inputs,
                region.facts.neuron_type,
                region.facts.homeostatic_updated,
            )
        for wire in self.wires:
            where = f"connections.{wire.source}->{wire.target}"
            core.add_connection(
                wire.source,
                wire.target,
                borrowed(f"{where}.weights", wire.weights),
                None if wire.delays is None else borrowed(f"{where}.delays", wire.delays),
            )
        own = self.own.facts.reported_metadata(BRAIN)
        core.set_whole(self.kinds.unmarked(self.own.node), own, metadata, self.steps)
        return core


def codec_of(path: Path, compression: str | bool | None) -> str | None:
    """What `compression` asks for in the library's words."""
    if compression is True:
        return _core.frames_of_name(path) or "zstd"
    return compression or None


def state_of(brain: Any, where: str = "brain") -> Mapping[str, Any]:
    """The state of an object with get_full_state(), or a dictionary that is one. Raises UsageError.

    where: what errors call it.
    """
    state = brain
    if not isinstance(brain, Mapping):
        get = getattr(brain, "get_full_state", None)
        if not callable(get) or isinstance(brain, type):
            found = type(brain).__qualname__
            raise _bad(where, f"{where}: got {found}, expected get_full_state() or a dictionary", brain)
        state = get()
    if not isinstance(state, Mapping):
        found = type(state).__qualname__
        raise _bad(where, f"{where}.get_full_state(): got {found}, expected a dictionary", state)
    wrong = [key for key in state if not is_text(key)]
    if wrong:
        raise _bad(where, f"{where}: the state has the key {wrong[0]!r}, expected texts alone", wrong[0])
    return state


def plan(
    brain: Any,
    path: Path,
    metadata: Mapping[str, Any] | None,
    *,
    compression: str | bool | None,
    level: int | None,
    include_homeostatic: bool,
    policy: str | PrecisionPolicy | None,
    sparse: bool,
    options: Mapping[str, Any],
) -> Plan:
    """Raises UnsupportedError that names the place of what cannot be saved; UsageError."""
    encoded, reported = planned(brain, metadata)
    core = encoded.core(reported)
    save = {"replace": True, **options, "compression": codec_of(path, compression), "compression_level": level}
    return Plan(
        core,
        _core.BrainSaveOptions(
            policy_text(policy),
            include_homeostatic=include_homeostatic,
            sparse=sparse,
            roles_by_name=not encoded.in_regions,
            save=save,
        ),
    )


def planned(brain: Any, metadata: Mapping[str, Any] | None) -> tuple[Encoded, dict[str, Any]]:
    """A brain's state, and the metadata of its file. Raises as plan()."""
    state = state_of(brain)
    loaded = state if isinstance(state, BrainState) else None
    beside = remembered(brain) if loaded is None else loaded.beside
    if beside is not None:
        if metadata is None:
            metadata = beside.metadata
            # What happened since it was loaded is known to the brain alone.
            mine = None if loaded is not None else state.get("growth_history") or history_of(brain)
            metadata = {**metadata, "growth_history": mine} if mine else metadata
        if state.get("metadata") is beside.metadata:  # its file's, not its own
            state = {key: value for key, value in state.items() if key != "metadata"}
    encoded = encode(state, beside, loaded)
    reported = _metadata.given(metadata, next(_histories(brain, state, metadata, beside), None))
    kinds, wires = encoded.kinds, encoded.wires
    if not encoded.wires_are_members:
        check_fit(wires, {region.name: region.n_neurons for region in encoded.regions})
    reported[_metadata.MEMBER] = {
        "version": 1,
        "layout": "regions" if encoded.in_regions else "flat",
        "arrays": kinds.arrays,
        "keys": list(state),
    }
    if wires and kinds.torch and not any(is_torch(wire.weights) for wire in wires):
        reported[_metadata.MEMBER]["connections"] = "numpy"
    return encoded, reported


def encode(state: Mapping[str, Any], beside: Beside | None, loaded: BrainState | None) -> Encoded:
    """beside: what its file said. loaded: the state itself, if it is one that was loaded.

    Raises UnsupportedError that names the place of what cannot be saved; UsageError.
    """
    kinds = Kinds()
    in_regions = isinstance(state.get("regions"), Mapping)
    regions, components, steps = _parts(state, in_regions)
    if loaded is not None and "training_steps" not in state:
        steps = loaded.training_steps
    facts = _facts(regions, beside)
    wires, are_members = connections_of(state, regions, facts, beside, itself=loaded is not None)
    if are_members:
        del components["connections"]
    found = [_encoded(name, members, kinds, facts.get(name)) for name, members in regions.items()]
    own = _encoded(BRAIN, components, kinds, facts.get(BRAIN))
    kinds.torch |= any(is_torch(wire.weights) for wire in wires)
    return Encoded(found, own, wires, are_members, kinds, in_regions, steps)


def delta_options(
    plan: Plan, *, keep_policy: bool, threshold: float, pack: bool, search: Iterable[Path]
) -> _core.BrainDeltaOptions:
    return _core.BrainDeltaOptions(keep_policy, threshold, pack, paths(search), plan.options)


def _parts(state: Mapping[str, Any], in_regions: bool) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Regions by their names in the file, components of the whole brain, and the header's training steps."""
    regions: dict[str, Any] = {}
    components: dict[str, Any] = {}
    steps = 0
    for key, value in state.items():
        if key == "training_steps":
            steps = _steps(value)
            if type(value) is not int or value != steps:
                components[key] = value
        elif in_regions and key in ("regions", "pathways") and isinstance(value, Mapping):
            for name, region in value.items():
                regions[_region_name(key, name)] = state_of(region, f"{key}.{name}")
        elif not in_regions and _may_be_region(key, value):
            regions[key] = value
        else:
            components[key] = value
    return regions, components, steps


def _encoded(name: str, members: Mapping[str, Any], kinds: Kinds, facts: RegionFacts | None) -> Region:
    encoder = RegionEncoder(name, kinds)
    node = {key: encoder.component(key, value) for key, value in members.items()}
    facts = facts or RegionFacts()
    counts = (0, 0) if name == BRAIN else facts.counts(members)
    return Region(name, members, node, *counts, facts, encoder.states)


def _facts(regions: Mapping[str, Any], beside: Beside | None) -> dict[str, RegionFacts]:
    """What files said of these, by their names now."""
    found: dict[str, RegionFacts] = {}
    for name, region in regions.items():
        facts = getattr(region, "facts", None)
        if isinstance(facts, RegionFacts):
            found[name] = facts
    if beside is not None:
        # Those that are under another name now are not those of their old one too.
        taken = set(map(id, found.values()))
        for name in regions.keys() - found.keys():
            reported = beside.region(name)
            if reported is not None and id(reported) not in taken:
                found[name] = reported
        if beside.own is not None:
            found[BRAIN] = beside.own
    return found


def _steps(value: object) -> int:
    """For the header, of a whole number of any kind, a tensor's element too; 0 if it is not one that fits there."""
    try:
        steps = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, RuntimeError):
        return 0
    return steps if 0 <= steps < 1 << 63 else 0


def _histories(
    brain: Any, state: Mapping[str, Any], metadata: Mapping[str, Any] | None, beside: Beside | None
) -> Iterator[Any]:
    """Growth histories that there are, the one that counts first."""
    given = metadata.get("growth_history") if isinstance(metadata, Mapping) else None
    if given is not None and not isinstance(given, list | tuple):
        raise _metadata.bad_argument("metadata.growth_history", given, "a list of dictionaries")
    own = None if isinstance(brain, Mapping) else history_of(brain)
    loaded = None if beside is None else beside.metadata.get("growth_history")
    yield from (found for found in (given, state.get("growth_history"), own, loaded) if isinstance(found, list | tuple))


def history_of(brain: object) -> list[Any] | tuple[Any, ...] | None:
    """The growth history that an object keeps by itself, if it does."""
    for name in ("growth_history", "_growth_history"):
        found = getattr(brain, name, None)
        if isinstance(found, list | tuple):
            return found
    return None


def _region_name(kind: str, name: object) -> str:
    if not is_text(name) or (kind == "regions" and not _is_free(name)):
        raise _bad(kind, f"{kind}: got {name!r}, expected a text other than {BRAIN!r}, and without {PATHWAY!r}", name)
    return name if kind == "regions" else f"{PATHWAY}{name}"


def _is_free(name: str) -> bool:
    return name not in ("", BRAIN) and not name.startswith(PATHWAY)


def _may_be_region(key: str, value: Any) -> bool:
    return type(value) in (dict, BrainRegion, LazyRegion) and _is_free(key) and all(is_text(name) for name in value)


def _bad(field: str, text: str, value: object) -> Exception:
    return make_error(UsageError, text, "bad_argument", field=field, value=str(value)[:200])
