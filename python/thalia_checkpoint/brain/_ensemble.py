"""Several brains in one file, each under a prefix. docs/use/python.md, "Ensembles"."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._keywords import suggests
from .._leaves import is_text
from .._missing import not_found
from .._types import Path, ReadOptions
from ..errors import FormatError, UsageError, make_error
from . import _metadata
from ._arrays import Framework
from ._checkpoint import BrainCheckpoint, summary_of
from ._facts import BRAIN
from ._in_memory import HISTORY, is_path
from ._load import MAX_BYTES, Loader, OpenBrain, warn_of
from ._policy import PrecisionPolicy, policy_text
from ._save import PATHWAY, codec_of, planned
from ._state import BrainState

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import PlainOptions

#: The member of the file's metadata that has the brains.
MEMBER = "thalia_ensemble"
_VERSION = 1
_SOURCE = "source:"


@suggests
def save_ensemble(
    brains: Mapping[str, Any],
    path: Path,
    metadata: Mapping[str, Any] | None = None,
    compression: str | bool | None = None,
    compression_level: int | None = None,
    precision_policy: str | PrecisionPolicy | None = None,
    include_homeostatic: bool = True,
    *,
    sparse: bool = True,
    max_bytes: int = MAX_BYTES,
    **options: Unpack[PlainOptions],
) -> dict[str, Any]:
    """Saves several brains in one file: region R of the brain with the prefix P is region PR of the file.

    brains: by the prefix of each, such as "left/": dictionaries, objects with get_full_state(), or paths of
        checkpoints, which are read whole. No prefix is empty, or the beginning of another.
    metadata: of the file; each brain keeps its own.
    max_bytes: of each checkpoint that is read.
    The other arguments are those of BrainCheckpoint.save().

    Returns what BrainCheckpoint.save() does. Raises as that; UsageError for prefixes that cannot be, or where
    the file would replace one that is read.
    """
    _check(brains, path)
    core = _core.Brain()
    entries: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    steps, flat = 0, True
    for prefix, brain in brains.items():
        state = BrainCheckpoint.load(brain, max_bytes=max_bytes) if is_path(brain) else brain
        encoded, own = planned(state, None)
        names = {region.name for region in encoded.regions}
        under = partial(_under, prefix)
        for i, region in enumerate(encoded.regions):
            told = _renamed(region.facts.metadata, partial(_under_known, under, names))
            encoded.regions[i] = region._replace(facts=replace(region.facts, metadata=told))
        encoded.add_to(core, under)
        tree = encoded.kinds.unmarked(encoded.own.node)
        core.add_region(False, f"{prefix}{BRAIN}", tree, encoded.own.facts.reported_metadata(BRAIN), 0, 0, "none", 0)
        for event in own.pop(HISTORY, []):
            history.append({**event, "region": under(str(event.get("region", "")))})
        entries.append({"prefix": prefix, "training_steps": encoded.steps, "metadata": own})
        steps, flat = max(steps, encoded.steps), flat and not encoded.in_regions
    reported_metadata = _metadata.given(metadata, history)
    reported_metadata[MEMBER] = {"version": _VERSION, "brains": entries}
    core.set_whole({}, {}, reported_metadata, steps)
    save = {"replace": True, **options, "compression": codec_of(path, compression)}
    FilePath(path).parent.mkdir(parents=True, exist_ok=True)
    reported = core.save(
        path,
        _core.BrainSaveOptions(
            policy_text(precision_policy),
            include_homeostatic=include_homeostatic,
            sparse=sparse,
            roles_by_name=flat,
            save={**save, "compression_level": compression_level},
        ),
    )
    return summary_of(reported, path, compression, compression_level)


@suggests
def load_ensemble(
    path: Path,
    prefixes: Iterable[str] | None = None,
    device: Any = None,
    lazy: bool = False,
    *,
    framework: Framework | None = None,
    classes: Iterable[type] = (),
    max_bytes: int = MAX_BYTES,
    search: Iterable[Path] = (),
    **options: Unpack[ReadOptions],
) -> dict[str, BrainState]:
    """The brains of a file that save_ensemble() wrote, by prefix; each is as its own file would give it.

    prefixes: of those that are wanted. With `lazy`, regions are read on first access.
    max_bytes: of the file, and of each brain.
    The other arguments are those of BrainCheckpoint.load().

    Raises as BrainCheckpoint.load(); NotFoundError for a prefix that is not there; UsageError for a file that
    is no ensemble.
    """
    opened = OpenBrain(path, lazy=True, max_bytes=max_bytes, search=search, **options)
    warn_of(opened)
    entries = _entries(opened)
    wanted = list(entries) if prefixes is None else [prefixes] if isinstance(prefixes, str) else list(prefixes)
    for prefix in wanted:
        if prefix not in entries:
            text = f"{os.fspath(path)}: no brain {prefix!r}; there are {', '.join(entries)}"
            raise not_found(text, str(prefix), entries, path=os.fspath(path), field="prefixes", value=str(prefix))
    with opened.limit_named():
        wires = opened.core.connections()
    found: dict[str, BrainState] = {}
    for prefix in wanted:
        part = _Part(opened.core, entries[prefix], wires, opened.metadata.get(HISTORY))
        brain = OpenBrain(path, max_bytes=max_bytes, opened=cast(_core.LoadedBrain, part))
        dialect = brain.dialect(framework, device, classes)
        found[prefix] = Loader(brain, dialect, max_bytes).state(set() if lazy else None)
    return found


class _Part:
    """One brain of a file, as _core.LoadedBrain has the whole."""

    is_original = False
    warnings: tuple[str, ...] = ()

    def __init__(
        self, core: _core.LoadedBrain, entry: dict[str, Any], wires: list[tuple[Any, ...]], history: object
    ) -> None:
        self._core = core
        self._prefix: str = entry["prefix"]
        self.metadata = dict(entry["metadata"])
        events = [
            {**event, "region": self._name(event["region"])}
            for event in (history if isinstance(history, list) else [])
            if isinstance(event, dict) and isinstance(event.get("region"), str) and self._is_mine(event["region"])
        ]
        if events:
            self.metadata[HISTORY] = events
        self.training_steps: int = entry["training_steps"]
        self._wires = wires
        own = f"{self._prefix}{BRAIN}"
        self.regions = [self._name(name) for name in core.regions if self._is_mine(name) and name != own]
        self.pathways = [name.removeprefix(self._prefix) for name in core.pathways if name.startswith(self._prefix)]
        self.state, facts = core.take(False, own)
        self.state_metadata = facts["metadata"]

    def take(self, is_pathway: bool, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        tree, facts = self._core.take(is_pathway, self._prefix + name)
        return tree, self._told(facts)

    def facts(self, is_pathway: bool, name: str) -> dict[str, Any]:
        return self._told(self._core.facts(is_pathway, self._prefix + name))

    def connections(self) -> list[tuple[Any, ...]]:
        return [
            (self._name(source), self._name(target), *matrices)
            for source, target, *matrices in self._wires
            if self._is_mine(source) and self._is_mine(target)
        ]

    def _told(self, facts: dict[str, Any]) -> dict[str, Any]:
        metadata = _renamed(facts["metadata"], lambda name: self._name(name) if self._is_mine(name) else name)
        return {**facts, "metadata": metadata}

    def _is_mine(self, name: str) -> bool:
        return name.removeprefix(PATHWAY).startswith(self._prefix)

    def _name(self, name: str) -> str:
        if name.startswith(PATHWAY):
            return PATHWAY + name.removeprefix(PATHWAY).removeprefix(self._prefix)
        return name.removeprefix(self._prefix)


def _under(prefix: str, name: str) -> str:
    if name.startswith(PATHWAY):
        return f"{PATHWAY}{prefix}{name.removeprefix(PATHWAY)}"
    return prefix + name


def _under_known(under: Callable[[str], str], names: set[str], name: str) -> str:
    """Only regions of the brain have another name in the file."""
    return under(name) if name in names else name


def _renamed(metadata: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """A region's metadata, whose axes name the regions that its inputs come from."""
    axes = metadata.get("axes")
    if not isinstance(axes, dict):
        return metadata

    def axis(text: Any) -> Any:
        is_source = isinstance(text, str) and text.startswith(_SOURCE)
        return _SOURCE + rename(text.removeprefix(_SOURCE)) if is_source else text

    return {
        **metadata,
        "axes": {path: [axis(text) for text in of] if isinstance(of, list) else of for path, of in axes.items()},
    }


def _check(brains: Mapping[str, Any], path: Path) -> None:
    if not isinstance(brains, Mapping) or not brains:
        raise _metadata.bad_argument("brains", brains, "brains by their prefixes")
    for prefix in brains:
        if not is_text(prefix) or prefix == "" or prefix.startswith((PATHWAY, BRAIN)):
            raise _metadata.bad_argument("prefix", prefix, f"a text that does not begin with {PATHWAY} or {BRAIN}")
        for other in brains:
            if other is not prefix and isinstance(other, str) and other.startswith(prefix):
                raise _metadata.bad_argument("prefix", other, f"one that does not begin with another, {prefix!r}")
    for brain in brains.values():
        if is_path(brain) and os.path.exists(path) and os.path.exists(brain) and os.path.samefile(brain, path):
            raise make_error(
                UsageError,
                f"{os.fspath(path)}: the output is a file that is read",
                "bad_argument",
                path=os.fspath(path),
                field="path",
            )


def _entries(opened: OpenBrain) -> dict[str, dict[str, Any]]:
    """What the file says of each brain, by prefix."""
    found = opened.metadata.get(MEMBER)
    if found is None:
        raise make_error(
            UsageError,
            f"{opened.path}: no ensemble; BrainCheckpoint.load() loads the one brain that it has",
            "wrong_state",
            path=opened.path,
            field=f"metadata.{MEMBER}",
        )
    names = set(opened.names())
    brains = found.get("brains") if isinstance(found, dict) and found.get("version") == _VERSION else None
    fits = isinstance(brains, list) and all(
        isinstance(brain, dict)
        and isinstance(brain.get("prefix"), str)
        and f"{brain['prefix']}{BRAIN}" in names
        and isinstance(brain.get("metadata"), dict)
        and type(brain.get("training_steps")) is int
        for brain in brains
    )
    if not fits:
        raise make_error(
            FormatError,
            f"{opened.path}: metadata.{MEMBER}: expected version {_VERSION}, and prefix, metadata and training_steps "
            "of each brain that the file has",
            "bad_value",
            path=opened.path,
            section="metadata",
            field=f"metadata.{MEMBER}",
        )
    return {brain["prefix"]: brain for brain in cast(list[dict[str, Any]], brains)}
