"""What load_into() found, and what it says where a file does not fit a module."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import _html
from .._types import Path
from ..errors import UsageError, make_error
from ._known_names import WRAPPERS

#: Names that a message has of each kind.
_SHOWN = 10
#: Names that are looked at for what they differ by.
_LOOKED_AT = 3


class LoadReport(NamedTuple):
    """What load_into() found."""

    loaded: list[str]
    missing: list[str]
    """Names of the module that are neither in the file nor tied to one that is."""
    unexpected: list[str]
    """Names of the file that are not in the module."""
    mismatched: list[str]
    """With both shapes: "weight: [3, 4] in the file, [3, 5] in the module"; or with the dtype that does not fit."""

    @property
    def fits(self) -> bool:
        """Whether nothing is missing, unexpected or mismatched."""
        return not (self.missing or self.unexpected or self.mismatched)

    def __repr__(self) -> str:
        parts = (f"{name}=[{_shown(list(map(repr, names)))}]" for name, names in zip(self._fields, self, strict=True))
        return f"LoadReport({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return _html.of_result(self)


def misfit(path: Path, report: LoadReport, more: str = "") -> Exception:
    """An error that lists what is missing, unexpected or mismatched, a line each, the first names of many.

    more: a line after these, such as a hint.
    """
    kinds = (("missing", report.missing), ("unexpected", report.unexpected), ("mismatched", report.mismatched))
    lines = [f"{what}: {_shown(names)}" for what, names in kinds if names]
    return make_error(
        UsageError,
        [f"{os.fspath(path)}: does not fit the module", *lines, *filter(None, [more])],
        "shape_mismatch" if report.mismatched else "not_found",
        path=os.fspath(path),
    )


def nothing_loaded(path: Path, file_names: Sequence[str], own_names: Sequence[str], more: str) -> Exception:
    """An error of a file of which nothing came into a module."""
    lines = [
        f"{os.fspath(path)}: nothing of it is in the module, and nothing was loaded",
        f"in the file: {_shown(file_names, 3) or 'no tensors'}",
        f"in the module: {_shown(own_names, 3)}",
    ]
    return make_error(UsageError, [*lines, *filter(None, [more])], "not_found", path=os.fspath(path))


def no_module(value: Any) -> Exception:
    """An error of what load_into() cannot fill."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    way = ""
    if callable(getattr(value, "load_state_dict", None)):
        way = '; the way for it is load_state_dict(load(path)["optimizer"]), or whichever name it was saved under'
    return make_error(
        UsageError,
        f"module: got {kind}, expected a torch.nn.Module{way}",
        "bad_argument",
        field="module",
        value=kind,
        expected="a torch.nn.Module",
    )


def difference(file_names: Sequence[str], own_names: Iterable[str], prefix: str) -> str:
    """What names of a file and of a module differ by, and how to say so; empty if it is nothing simple.

    file_names: all, as the file has them. prefix: as it was asked for.
    """
    there, own = set(file_names), set(own_names)
    begin_so = [name for name in file_names if name.startswith(prefix)]
    given = {name.removeprefix(prefix) for name in begin_so}
    if own - given:
        ways = [way for way in _ways(there, given, own, prefix) if 2 * len(way.fitting) >= len(own)]
        best = max(ways, key=lambda way: len(way.fitting), default=None)
        if best is not None and len(best.fitting) > len(given & own):
            return _said(len(best.fitting - given), len(own), best.what, best.how)
    if prefix and not begin_so and there:
        fronts = sorted({f"{name.partition('.')[0]}." for name in file_names if "." in name})
        return f"no name of the file begins with {prefix!r}" + (f"; they begin with {_shown(fronts)}" if fronts else "")
    if any(".lora_" in name for name in file_names) and not any(".lora_" in name for name in own):
        return "these are the weights of an adapter (LoRA): they go into a model that the adapter was put on"
    return ""


class _Way(NamedTuple):
    """A way to call names of a file otherwise."""

    what: str
    """What the names differ by."""
    how: str
    """The argument of load_into() for it, in Python."""
    fitting: set[str]
    """The names of the module that are found so."""


def _ways(there: set[str], given: set[str], own: set[str], prefix: str) -> Iterator[_Way]:
    """The simplest first. there: names of the file; given: what the prefix leaves of them."""

    def way(what: str, how: str, rename: Callable[[str], str]) -> _Way:
        names = list(map(rename, given))
        # Two that become one are refused.
        return _Way(what, how, own.intersection(names) if len(set(names)) == len(names) else set())

    front = _front(own, there)
    if front and front != prefix:
        fitting = {name for name in own if front + name in there}
        yield _Way(f"{front!r} in front in the file", f"prefix={front!r}", fitting)
    if front := _front(given, own):
        what, how = f"{front!r} in front in the module", f"rename={{'': {front!r}}}"
        yield way(what, how, lambda name: front + name)
    for wrapper in WRAPPERS:
        for other in ("", *WRAPPERS):
            what = f"{wrapper!r} in the file" + (f" and {other!r} in the module" if other else "")
            how = f'rename=lambda name: name.replace("{wrapper}", "{other}")'
            yield way(what, how, lambda name, w=wrapper, o=other: name.replace(w, o))  # type: ignore[misc]
        how = f'rename={{name.replace("{wrapper}", ""): name for name in module.state_dict()}}.get'
        fitting = {name for name in own if name.replace(wrapper, "") in given}
        yield _Way(f"{wrapper!r} in the module", how, fitting)
    for before, after in _fronts(given, own):
        what = f"{before!r} in front in the file and {after!r} in the module"
        how = f"rename={{{before!r}: {after!r}}}"
        yield way(
            what,
            how,
            lambda name, b=before, a=after: a + name.removeprefix(b) if name.startswith(b) else name,  # type: ignore[misc]
        )


def _front(names: set[str], longer: set[str]) -> str:
    """What most of some names lack in front, of other names."""
    found: Counter[str] = Counter()
    for name in sorted(names - longer)[:_LOOKED_AT]:
        found.update({other.removesuffix(name) for other in longer if other.endswith(f".{name}")})
    counts = {front: sum(front + name in longer for name in names) for front, _ in found.most_common(_LOOKED_AT)}
    return max(counts, key=lambda front: (counts[front], -len(front)), default="")


def _fronts(given: set[str], own: set[str]) -> Iterator[tuple[str, str]]:
    """What names of a file and of a module have before what is the same in both."""
    found: Counter[tuple[str, str]] = Counter()
    for name in sorted(own - given)[:_LOOKED_AT]:
        parts = name.split(".")
        for n in range(1, min(len(parts), _LOOKED_AT + 1)):
            after, end = ".".join(parts[:n]) + ".", ".".join(parts[n:])
            found.update((other.removesuffix(end), after) for other in given if other.endswith(f".{end}"))
    for (before, after), _ in found.most_common(3 * _LOOKED_AT):
        if before != after:
            yield before, after


def _said(n: int, of: int, what: str, how: str) -> str:
    names = "all names differ" if n == of else f"{n} of {of} names differ"
    return f"{names} by {what} alone: {how}"


def _shown(names: Sequence[str], most: int = _SHOWN) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
