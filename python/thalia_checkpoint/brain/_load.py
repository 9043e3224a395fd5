"""A brain's state out of a file of any kind."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._missing import not_found
from .._support import paths
from .._types import Access, Path, Verification
from .._warn import warn_caller
from ..errors import FormatError, UnsupportedError, UsageError, make_error
from . import _metadata
from ._arrays import Framework, Read, dense_bytes, reader, tensors_in
from ._decode import Dialect, decode_region
from ._facts import BRAIN, Beside, RegionFacts, facts_of
from ._save import PATHWAY
from ._state import BrainRegion, BrainState, LazyRegion

#: The source specification's: larger checkpoints are not loaded unless asked for.
MAX_BYTES = 10_000_000_000
#: What the original program gives of every file.
_ALWAYS = ("config", "theta", "scheduler", "trial_state")


class OpenBrain:
    """A checkpoint that was opened, whatever wrote it."""

    def __init__(
        self,
        path: Path,
        *,
        regions: Iterable[str] = (),
        lazy: bool = False,
        read_tensors: bool = True,
        resolve_deltas: bool = True,
        max_bytes: int = MAX_BYTES,
        search: Iterable[Path] = (),
        access: Access = "mapped",
        verification: Verification = "on_first_touch",
        threads: int = 0,
        opened: _core.LoadedBrain | None = None,
    ) -> None:
        """opened: what the library has opened already; the other arguments are of no use then."""
        self.path = os.fspath(path)
        self._max_bytes = max_bytes
        wanted = list(regions)
        with self.limit_named():
            try:
                self.core = opened or _core.LoadedBrain.load(
                    path,
                    wanted,
                    lazy,
                    read_tensors,
                    resolve_deltas,
                    max_bytes,
                    paths(search),
                    access,
                    verification,
                    threads,
                )
            except UsageError as error:
                if error.code == "not_found" and error.region is not None:
                    raise self._no_region(wanted) from error
                raise
        self.metadata: dict[str, Any] = self.core.metadata
        self.original = self.core.is_original or isinstance(self.metadata.get(_metadata.SOURCE), dict)
        """A file of the original program, or one that was converted from it."""

    @property
    def mark(self) -> dict[str, Any] | None:
        """What this package noted. Raises FormatError, UnsupportedError for one that is not valid."""
        mark = self.metadata.get(_metadata.MEMBER)
        if mark is None:
            return None
        if isinstance(mark, dict) and mark.get("version") not in (None, 1):
            raise self._bad(mark.get("version"), "version 1", UnsupportedError, "unsupported_version")
        fits = (
            isinstance(mark, dict)
            and mark.get("layout") in ("regions", "flat")
            and mark.get("arrays") in ("numpy", "torch")
            and isinstance(mark.get("keys"), list)
            and all(isinstance(key, str) for key in mark["keys"])
        )
        if not fits:
            raise self._bad(mark, "layout, arrays and keys")
        found: dict[str, Any] = mark
        return found

    def names(self) -> list[str]:
        """The names of regions and pathways."""
        return [*self.core.regions, *(f"{PATHWAY}{name}" for name in self.core.pathways)]

    def region(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its tree, which can be had once, and what the file says beside it."""
        with self.limit_named():
            return self.core.take(*_split(name))

    def facts(self, name: str) -> dict[str, Any]:
        return self.core.facts(*_split(name))

    def shown_metadata(self) -> dict[str, Any]:
        return _metadata.shown(self.metadata, self.core.state if self.original else {})

    def dialect(self, framework: Framework | None, device: Any, classes: Iterable[type]) -> Dialect:
        mark = self.mark
        arrays = (mark or {}).get("connections")
        saved: Framework = "torch" if self.original or (mark or {}).get("arrays") == "torch" else "numpy"
        return Dialect(
            framework="torch" if device is not None else framework or saved,
            device=device,
            python=mark is not None,
            original=self.original and mark is None,
            classes={f"{cls.__module__}.{cls.__qualname__}": cls for cls in classes},
            connections="numpy" if framework is None and arrays == "numpy" else None,
        )

    @contextmanager
    def limit_named(self) -> Iterator[None]:
        """What passes a limit names the argument that sets it."""
        try:
            yield
        except FormatError as error:
            if error.code != "limit_exceeded":
                raise
            raise make_error(
                FormatError,
                f"{error}; max_bytes, which is {self._max_bytes}, allows more",
                "limit_exceeded",
                path=self.path,
                region=error.region,
                field="max_bytes",
                expected=str(self._max_bytes),
            ) from error

    def _no_region(self, wanted: list[str]) -> Exception:
        names = OpenBrain(self.path, lazy=True, read_tensors=False, verification="off").names()
        name = next((name for name in wanted if name not in names), wanted[0])
        text = f"{self.path}: no region {name!r}; there are {', '.join(names) or 'none'}"
        return not_found(text, str(name), names, path=self.path, region=str(name))

    def _bad(self, value: object, expected: str, cls: Any = FormatError, code: str = "bad_value") -> Exception:
        field = f"metadata.{_metadata.MEMBER}"
        return make_error(
            cls,
            f"{self.path}: {field}: got {value!r}, expected {expected}",
            code,
            path=self.path,
            section="metadata",
            field=field,
            value=str(value),
            expected=expected,
        )


def _split(name: str) -> tuple[bool, str]:
    return name.startswith(PATHWAY), name.removeprefix(PATHWAY)


class Loader:
    """Makes the regions of an open checkpoint, at once or when they are touched."""

    def __init__(self, brain: OpenBrain, dialect: Dialect, max_bytes: int) -> None:
        self._brain = brain
        self._dialect = dialect
        self._left = max_bytes
        self._max = max_bytes
        self._lock = _core.ThreadLock()
        self._facts: dict[str, RegionFacts] = {}

    def state(self, eager: set[str] | None) -> BrainState:
        """eager: the regions to be made now, where the others are made when they are touched; None for all."""
        brain = self._brain
        parts: dict[str, Any] = {}
        reported: dict[str, Any] = {}
        for name in brain.names():
            if eager is None or name in eager:
                parts[name] = self._region(name)
                reported[name] = parts[name].facts
            else:
                parts[name] = reported[name] = LazyRegion(
                    functools.partial(self._region, name), functools.partial(self._facts_of, name)
                )
        metadata = brain.shown_metadata()
        own = self._decoded(BRAIN, brain.core.state)
        own_facts = RegionFacts(metadata=brain.core.state_metadata)
        steps = brain.core.training_steps
        beside = Beside(metadata, reported, own_facts, self._connections())
        return BrainState(self._members(parts, own, metadata, steps, beside), metadata, steps, beside)

    def _members(
        self, parts: dict[str, Any], own: dict[str, Any], metadata: dict[str, Any], steps: int, beside: Beside
    ) -> dict[str, Any]:
        mark = self._brain.mark
        found: dict[str, Any] = {}
        if mark is None or mark["layout"] == "regions":
            found["regions"] = {name: part for name, part in parts.items() if not name.startswith(PATHWAY)}
            pathways = {name.removeprefix(PATHWAY): part for name, part in parts.items() if name.startswith(PATHWAY)}
            if pathways or (mark is not None and "pathways" in mark["keys"] and "pathways" not in own):
                found["pathways"] = pathways
        else:
            found.update(parts)
        found.update(own)
        if self._brain.original and mark is None:
            always = {"metadata": metadata, **{key: found.get(key, {}) for key in _ALWAYS}}
            found = {"regions": found.pop("regions"), **always, **found}
        elif mark is None or ("training_steps" in mark["keys"] and "training_steps" not in own):
            found["training_steps"] = steps
        if beside.connections:
            found.setdefault("connections", beside.connections)
        if mark is not None:
            order = dict.fromkeys([*mark["keys"], *found])
            found = {key: found[key] for key in order if key in found}
        if mark is None or mark["layout"] == "regions":
            found.setdefault("metadata", metadata)
        return found

    def _connections(self) -> list[dict[str, Any]]:
        dialect = self._dialect
        read: Read = reader(dialect.connections or dialect.framework, None if dialect.connections else dialect.device)
        with self._brain.limit_named():
            wires = self._brain.core.connections()
        found = []
        for source, target, weights, delays in wires:
            self._take((weights, delays), f"connection {source}->{target}")
            matrices = {"weights": read(weights), "delays": None if delays is None else read(delays)}
            found.append({"source": source, "target": target, **matrices})
        return found

    def _region(self, name: str) -> BrainRegion:
        facts = self._facts_of(name)
        tree, _ = self._brain.region(name)
        found = BrainRegion(self._decoded(name, tree), facts)
        facts.read(found)
        return found

    def _decoded(self, name: str, tree: dict[str, Any]) -> dict[str, Any]:
        self._take(tensors_in(tree), name)
        return decode_region(name, tree, self._dialect)

    def _facts_of(self, name: str) -> RegionFacts:
        with self._lock:
            if name not in self._facts:
                self._facts[name] = facts_of(name, self._brain.facts(name))
            return self._facts[name]

    def _take(self, tensors: Iterable[_core.LoadedTensor | None], what: str) -> None:
        with self._lock:
            self._left -= sum(dense_bytes(tensor) for tensor in tensors if tensor is not None)
            if self._left >= 0:
                return
        raise make_error(
            FormatError,
            f"{self._brain.path}: {what}: the state takes more than {self._max} bytes; max_bytes allows more",
            "limit_exceeded",
            path=self._brain.path,
            region=what,
            field="max_bytes",
            expected=str(self._max),
        )


def warn_of(brain: OpenBrain) -> None:
    """A UserWarning for each oddity of a file that was loaded all the same."""
    for text in brain.core.warnings:
        warn_caller(_core.printable(f"{brain.path}: {text}"))
