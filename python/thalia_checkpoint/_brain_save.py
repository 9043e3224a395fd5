"""A brain's state into a file: whole, or as a delta."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from . import _brain_arrays, _brain_metadata
from ._brain_connections import PlannedConnection, check_fit, connections_of, plan_connection
from ._brain_facts import BRAIN, CONNECTIONS, STATE, Beside, RegionFacts, remembered
from ._brain_policy import PrecisionPolicy, paths_of, policy_text
from ._brain_staging import Staging
from ._brain_state import BrainRegion, BrainState, LazyRegion
from ._brain_tree import VERSION, Kinds, RegionEncoder, Stored, is_optimizer, is_plain
from ._convert import convert
from ._delta import delta
from ._file import Path
from ._leaves import is_text
from ._wrap import compress
from ._writer import Writer
from .errors import UsageError, make_error

PATHWAY = "pathway:"
_CODECS = ("none", "plane_entropy", "packed_exponents", "zstd", "lz4", "auto")


class PlannedRegion(NamedTuple):
    name: str
    told: dict[str, Any]
    """What Writer.region() is given, but for the tree."""
    components: Mapping[str, Any]
    tensors: list[Stored]

    def write(self, writer: Writer, more: Mapping[str, Any]) -> None:
        tree = {STATE: {"version": VERSION, "components": self.components}}
        writer.region(self.name, **{**self.told, "metadata": {**tree, **self.told["metadata"], **more}})
        for tensor, role, _, entries in self.tensors:
            _brain_arrays.write(writer, self.name, tensor, role, entries)


class Plan(NamedTuple):
    """What a file gets. Arrays are borrowed."""

    regions: list[PlannedRegion]
    """That of the whole brain is the last one."""
    connections: list[PlannedConnection]
    metadata: dict[str, Any]
    training_steps: int

    def write(self, path: Path, options: Mapping[str, Any]) -> None:
        with Writer(path, **options) as writer:
            *regions, whole = self.regions
            for region in regions:
                region.write(writer, {})
            origins = [connection.write(writer) for connection in self.connections]
            whole.write(writer, {CONNECTIONS: origins} if any(any(o.values()) for o in origins) else {})
            writer.metadata = self.metadata
            writer.training_steps = self.training_steps

    def tensor_paths(self) -> Iterator[str]:
        for region in self.regions:
            for stored in region.tensors:
                yield from paths_of(region.name, stored.component, stored.tensor.name)


class Form(NamedTuple):
    """How a file is written."""

    codec: str | None
    """Of the chunks in it."""
    frames: str | None
    """What the whole file is compressed with."""
    level: int | None


class Written(NamedTuple):
    checksum: str
    changed: tuple[str, ...]
    """Regions that a delta's base has otherwise."""


def form_of(path: Path, compression: str | bool | None, level: int | None) -> Form:
    """A name that ends in .zst or .lz4 asks for the whole file in frames. Raises UsageError."""
    suffix = {".zst": "zstd", ".lz4": "lz4"}.get(FilePath(path).suffix)
    if not (compression is None or isinstance(compression, bool) or compression in _CODECS):
        expected = ", ".join((*_CODECS, "None"))
        raise _bad("compression", f"unknown compression: got {compression!r}, expected {expected}", compression)
    codec = (suffix or "zstd") if compression is True else compression or None
    if suffix is None:
        return Form(codec, None, level)
    if codec not in (None, "none", suffix):
        raise _bad(
            "compression",
            f"{os.fspath(path)}: compression: got {compression!r}, but the name says {suffix}",
            compression,
        )
    return Form(None, suffix, level)


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
    metadata: Mapping[str, Any] | None,
    *,
    include_homeostatic: bool,
    policy: str | PrecisionPolicy | None,
    sparse: bool,
    options: Mapping[str, Any],
) -> Plan:
    """Raises UnsupportedError that names the place of what cannot be saved; UsageError."""
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
    kinds = Kinds()
    in_regions = isinstance(state.get("regions"), Mapping)
    regions: dict[str, Any] = {}
    components: dict[str, Any] = {}
    steps = 0 if loaded is None else loaded.training_steps
    for key, value in state.items():
        if key == "training_steps":
            steps = _steps(value)
        if key == "training_steps" and type(value) is int and value == steps:
            continue
        if in_regions and key in ("regions", "pathways") and isinstance(value, Mapping):
            for name, region in value.items():
                regions[_region_name(key, name)] = state_of(region, f"{key}.{name}")
        elif not in_regions and _may_be_region(key, value):
            regions[key] = value
        else:
            components[key] = value
    facts = _facts(regions, beside)
    connections, are_members = connections_of(state, regions, facts, beside, itself=loaded is not None)
    if are_members:
        del components["connections"]
    planned = []
    for name, members in [*regions.items(), (BRAIN, components)]:
        if not include_homeostatic:
            members = {key: value for key, value in members.items() if key != "homeostatic"}
        encoder = RegionEncoder(
            name,
            kinds,
            by_name=not in_regions,
            origins=policy is not None,
            sparse=sparse and name != BRAIN,
            role="optimizer" if is_optimizer(members) else None,
        )
        planned.append(_planned(name, members, encoder, facts.get(name) or RegionFacts()))
    counts = {region.name: int(region.told["n_neurons"]) for region in planned}
    if not are_members:
        check_fit(connections, counts)
    wired = [plan_connection(c, kinds, origins=policy is not None, sparse=sparse) for c in connections]
    if metadata is not None and not isinstance(metadata, Mapping):
        raise _brain_metadata.bad_argument("metadata", metadata, "a dictionary")
    events = next((found for found in _histories(brain, state, metadata) if isinstance(found, list | tuple)), ())
    timestamp = options.get("timestamp")
    if timestamp is None and not options.get("reproducible"):
        timestamp = int(time.time())
    told = _brain_metadata.complete(metadata, events, timestamp)
    # Marks of arrays are settled before the trees are written.
    told[_brain_metadata.MEMBER] = {
        "version": 1,
        "layout": "regions" if in_regions else "flat",
        "arrays": kinds.settle(),
        "keys": list(state),
    }
    if wired and told[_brain_metadata.MEMBER]["arrays"] == "torch" and not any(c.torch for c in wired):
        told[_brain_metadata.MEMBER]["connections"] = "numpy"
    return Plan(planned, wired, told, steps)


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
            told = beside.region(name)
            if told is not None and id(told) not in taken:
                found[name] = told
        if beside.own is not None:
            found[BRAIN] = beside.own
    return found


def _steps(value: object) -> int:
    """For the header, of a whole number of any kind, a tensor's element too; 0 where it is none that fits there."""
    try:
        steps = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, RuntimeError):
        return 0
    return steps if 0 <= steps < 1 << 63 else 0


def _histories(brain: Any, state: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> Iterator[Any]:
    given = (metadata or {}).get("growth_history")
    if given is not None and not isinstance(given, list | tuple):
        raise _brain_metadata.bad_argument("metadata.growth_history", given, "a list of dictionaries")
    yield given
    yield state.get("growth_history")
    if not isinstance(brain, Mapping):
        yield history_of(brain)


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


def _planned(name: str, members: Mapping[str, Any], encoder: RegionEncoder, facts: RegionFacts) -> PlannedRegion:
    components: dict[str, Any] = {}
    config: Mapping[str, Any] = {}
    for key, value in members.items():
        node = encoder.component(key, value)
        if key == "config" and isinstance(node, dict) and is_plain(node):
            config, node = node, {"_type": "config"}
        components[key] = node
    told: dict[str, Any] = {"config": config, "n_neurons": 0, "metadata": facts.told_metadata(name)}
    if name != BRAIN:
        n_neurons, n_inputs = facts.counts(members, name)
        told |= {"n_neurons": n_neurons, "n_inputs": n_inputs, "neuron_type": facts.neuron_type}
        told["homeostatic_updated"] = facts.homeostatic_updated
    return PlannedRegion(name, told, components, encoder.tensors)


def write(
    plan: Plan,
    path: FilePath,
    form: Form,
    options: dict[str, Any],
    *,
    policy: str | PrecisionPolicy | None,
    base: Path | None = None,
    threshold: float = 0.0,
    search: Any = (),
) -> Written:
    """The old file or the new one is there, whatever happens. Only the last step is made durable."""
    changed: tuple[str, ...] = ()
    path.parent.mkdir(parents=True, exist_ok=True)
    last = {"replace": True, **options}
    coded = {"compression": form.codec, "level": None if form.frames else form.level}
    if base is None and policy is None and form.frames is None:
        plan.write(path, {**last, **coded})
        return Written(_identity(path), changed)
    # What the file itself says of how it was made; who may replace it, and how safely, is the last step's.
    inner = {key: value for key, value in options.items() if key not in ("durability", "replace", "progress", "sha256")}
    early = {**inner, "durability": "none"}
    frames_options = {
        key: value for key, value in last.items() if key in ("durability", "replace", "threads", "progress")
    }
    with Staging(path.parent) as staging:
        file = staging.inside("state.thalia")
        plan.write(file, early)
        if policy is not None:
            text = policy_text(policy, plan.tensor_paths())
            ends = base is None and form.frames is None
            out = path if ends else staging.inside("converted.thalia")
            convert(file, out, precision=text, **({**last, **coded} if ends else early))
            file = out
        if base is not None:
            ends = form.frames is None
            out = path if ends else staging.beside
            done = delta(base, file, out, threshold=threshold, search=search, **({**last, **coded} if ends else early))
            changed, file = done.changed_regions, out
        identity = _identity(file)
        if form.frames is not None:
            compress(file, path, compression=form.frames, level=form.level, **frames_options)  # type: ignore[arg-type]
    return Written(identity, changed)


def _identity(path: FilePath) -> str:
    """The closing checksum: the last 32 bytes of a file."""
    with path.open("rb") as file:
        file.seek(-32, os.SEEK_END)
        return file.read().hex()


def _bad(field: str, text: str, value: object) -> Exception:
    return make_error(UsageError, text, "bad_argument", field=field, value=str(value)[:200])
