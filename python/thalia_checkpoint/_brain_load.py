"""A brain's state out of a file of any kind."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Container, Iterable
from pathlib import Path as FilePath
from typing import Any

from . import _brain_facts, _brain_metadata, _core
from ._brain_arrays import Framework, dense_bytes, reader
from ._brain_decode import Dialect, decode_region, stored_as
from ._brain_facts import BRAIN, CONNECTIONS, Beside, RegionFacts
from ._brain_save import PATHWAY
from ._brain_state import BrainRegion, BrainState, LazyRegion
from ._convert import migrate
from ._file import File, Path, Region
from ._file import open as open_file
from ._missing import not_found
from ._warn import warn_caller
from .errors import FormatError, UnsupportedError, make_error

#: The source specification's: larger checkpoints are not loaded unless asked for.
MAX_BYTES = 10_000_000_000
#: What the original program gives of every file.
_ALWAYS = ("config", "theta", "scheduler", "trial_state")


class OpenBrain:
    """An open checkpoint, whatever wrote it."""

    def __init__(self, file: File, path: Path, original: bool) -> None:
        self.file = file
        self.path = os.fspath(path)
        self.original = original
        """A file of the original program, or one that was converted from it."""
        self.metadata = file.metadata
        self.original |= isinstance(self.metadata.get(_brain_metadata.ORIGIN), dict)

    @property
    def mark(self) -> dict[str, Any] | None:
        """What this package noted. Raises FormatError, UnsupportedError for one that is none."""
        mark = self.metadata.get(_brain_metadata.MEMBER)
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
        """Of regions and pathways."""
        return [name for name in self.file if name != BRAIN]

    def synapses(self) -> int:
        """As the file counts them: the original program counted the zeros of sparse matrices too."""
        if not self.original:
            return int(self.file.header["total_synapses"])
        regions = [region for region in self.file.values() if not region.name.startswith(PATHWAY)]
        return sum(t.size for region in regions for t in region.values() if t.role == "weights")

    def shown_metadata(self) -> dict[str, Any]:
        return _brain_metadata.as_written(self.metadata, self._plain_components() if self.original else {})

    def _plain_components(self) -> dict[str, Any]:
        """Of the brain-wide state of a file of the original program: it has no tensors."""
        if BRAIN not in list(self.file):
            return {}
        dialect = Dialect("numpy", None, python=False, original=False, widen=False, classes={})
        found: dict[str, Any] = decode_region(self.file.region(BRAIN), dialect)
        return found

    def dialect(self, framework: Framework | None, device: Any, classes: Iterable[type]) -> Dialect:
        mark = self.mark
        arrays = (mark or {}).get("connections")
        saved: Framework = "torch" if self.original or (mark or {}).get("arrays") == "torch" else "numpy"
        policy = self.metadata.get("precision_policy")
        return Dialect(
            framework="torch" if device is not None else framework or saved,
            device=device,
            python=mark is not None,
            original=self.original and mark is None,
            widen=isinstance(policy, str) and policy not in ("fp32", "keep"),
            classes={f"{cls.__module__}.{cls.__qualname__}": cls for cls in classes},
            connections="numpy" if framework is None and arrays == "numpy" else None,
        )

    def _bad(self, value: object, expected: str, cls: Any = FormatError, code: str = "bad_value") -> Exception:
        field = f"metadata.{_brain_metadata.MEMBER}"
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


def open_brain(path: Path, *, warn: bool = True, **options: Any) -> OpenBrain:
    """options: those of open(). Raises as it; what migrate() raises for files of the original program,
    of whose oddities `warn` tells with a UserWarning each."""
    if _core.detect_format(path) != "thalia-0.1":
        file = open_file(path, **options)
        if not isinstance(file, File):
            raise make_error(
                UnsupportedError,
                f"{os.fspath(path)}: a safetensors file; expected a checkpoint of a brain",
                "unsupported_feature",
                path=os.fspath(path),
                field="format",
                value="safetensors",
                expected="thalia",
            )
        return OpenBrain(file, path, original=False)
    # What is open stays there when its name is gone.
    with tempfile.TemporaryDirectory(prefix="thalia-") as folder:
        converted = FilePath(folder) / "brain.thalia"
        result = migrate(path, converted, to="1.0", durability="none")
        for text in result.warnings if warn else ():
            warn_caller(_core.printable(f"{os.fspath(path)}: {text}"))
        file = open_file(converted, **{**options, "verification": "off"})
        assert isinstance(file, File)
        return OpenBrain(file, path, original=True)


def check_size(path: Path, max_bytes: int) -> None:
    """Raises FormatError for a larger file."""
    try:
        size = os.path.getsize(path)
    except OSError:
        return  # opening it tells
    if size > max_bytes:
        raise make_error(
            FormatError,
            f"{os.fspath(path)}: a file of {size} bytes, max_bytes allows {max_bytes}",
            "limit_exceeded",
            path=os.fspath(path),
            field="max_bytes",
            value=str(size),
            expected=f"{max_bytes} at most",
        )


class Loader:
    """Reads the regions of an open checkpoint, eagerly or when they are touched."""

    def __init__(self, brain: OpenBrain, dialect: Dialect, max_bytes: int) -> None:
        self._brain = brain
        self._dialect = dialect
        self._left = max_bytes
        self._max = max_bytes
        self._lock = _core.ThreadLock()
        self._facts: dict[str, RegionFacts] = {}

    def state(self, regions: Iterable[str] | None, lazy: bool) -> BrainState:
        brain = self._brain
        names = brain.names()
        wanted = names if regions is None else [self._known(name, names) for name in regions]
        eager = set(wanted) if regions is not None or not lazy else set()
        parts: dict[str, Any] = {}
        told: dict[str, Any] = {}
        for name in names:
            if name in eager:
                parts[name] = self._region(name)
                told[name] = parts[name].facts
            elif lazy:
                parts[name] = told[name] = LazyRegion(
                    functools.partial(self._region, name), functools.partial(self._facts_of, name)
                )
        own: dict[str, Any] = {}
        own_facts = None
        if BRAIN in list(brain.file):
            own, own_facts = self._region(BRAIN), self._facts_of(BRAIN)
        # What the metadata of the brain-wide region say of the connections is told anew with them.
        origins = own_facts.metadata.pop(CONNECTIONS, None) if own_facts is not None else None
        metadata = brain.shown_metadata()
        steps = int(brain.file.header["training_steps"])
        beside = Beside(metadata, told, own_facts, self._connections(parts, origins))
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

    def _connections(self, parts: Container[str], origins: Any) -> list[dict[str, Any]]:
        """Those with both ends among the regions; origins: what their matrices were: docs/format/states.md."""
        dialect = self._dialect
        read = reader(dialect.connections or dialect.framework, None if dialect.connections else dialect.device)
        found = []
        for i, connection in enumerate(self._brain.file.connections):
            if connection.source not in parts or connection.target not in parts:
                continue
            origin = origins[i] if isinstance(origins, list) and i < len(origins) else None
            matrices = {"weights": connection.weights, "delays": connection.delays}
            read_in: dict[str, Any] = dict.fromkeys(matrices)
            for name, tensor in matrices.items():
                if tensor is not None:
                    where = f"connection {connection.source}->{connection.target}"
                    self._take(dense_bytes(tensor), where)
                    told = origin.get(name) if isinstance(origin, dict) else None
                    read_in[name] = read(tensor, stored_as(tensor, told, dialect, where))
            found.append({"source": connection.source, "target": connection.target, **read_in})
        return found

    def _region(self, name: str) -> BrainRegion:
        region: Region = self._brain.file.region(name)
        self._take(sum(map(dense_bytes, region.values())), name)
        facts = self._facts_of(name)
        found = BrainRegion(decode_region(region, self._dialect), facts)
        facts.read(found)
        return found

    def _facts_of(self, name: str) -> RegionFacts:
        with self._lock:
            if name not in self._facts:
                self._facts[name] = _brain_facts.facts_of(self._brain.file.region(name))
            return self._facts[name]

    def _take(self, size: int, what: str) -> None:
        with self._lock:
            self._left -= size
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

    def _known(self, name: str, names: list[str]) -> str:
        if name in names:
            return name
        text = f"{self._brain.path}: no region {name!r}; there are {', '.join(names) or 'none'}"
        raise not_found(text, str(name), names, path=self._brain.path, region=str(name))
