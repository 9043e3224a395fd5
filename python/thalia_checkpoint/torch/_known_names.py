"""Names of a file and of a module that differ by what is known alone: wrappers, and the usual places of a model.

torch.compile() and data parallelism put a name before those of what they wrap, wherever that is, and so does peft.
Checkpoints of a training have the model under one of a few names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .._types import Path
from ..errors import UsageError, make_error

#: What wrappers put into the names of what they wrap.
WRAPPERS = ("_orig_mod.", "module.")
#: peft's: a layer that has an adapter, and the adapter's own name, which is not in its file.
_ADAPTED = ("base_layer.", "default.")
#: Under which names a checkpoint has a model, and an object has its inner model.
_PLACES = ("model", "state_dict", "model_state_dict", "base_model")
_KNOWN = {*_PLACES, *(wrapper[:-1] for wrapper in WRAPPERS)}


class Found(NamedTuple):
    """How names of the file become names of the module."""

    prefix: str
    rename: Callable[[str], str]


def known_names(path: Path, file_names: Iterable[str], own_names: Iterable[str], prefix: str) -> Found | None:
    """The way in which most names of the module are found; None if that is with names as they are.

    prefix: what was asked for; the names begin so. Raises UsageError where two ways are as good.
    """
    given = [name.removeprefix(prefix) for name in file_names if name.startswith(prefix)]
    own = list(own_names)
    as_it_is = len({*given}.intersection(own))
    best: _Way | None = None
    rivals: list[_Way] = []
    for outer in sorted(_fronts(given), key=len):
        there = _by_key(given, outer)
        for inner in sorted(_fronts(own), key=len) if there else ():
            here = _by_key(own, inner)
            found = there.keys() & here.keys() if there and here else ()
            way = _Way(outer, inner, {there[key] for key in found} if there else set())
            if best is None or len(way.taken) > len(best.taken):
                best, rivals = way, []
            elif len(way.taken) == len(best.taken):
                rivals.append(way)
    if best is None or len(best.taken) <= as_it_is:
        return None
    for way in rivals:
        if way.taken != best.taken:
            raise make_error(
                UsageError,
                f"{os.fspath(path)}: as many names of the module are there in two ways, such as {min(best.taken)} and "
                f"{min(way.taken - best.taken)}; say which by prefix",
                "bad_argument",
                field="rename",
                value="auto",
                expected="a prefix",
            )
    return Found(prefix + best.outer, _renaming(own, best.inner))


class _Way(NamedTuple):
    """Beginnings to take away in the file and to put in front in the module."""

    outer: str
    inner: str
    taken: set[str]
    """Names of the file that become names of the module."""


def _renaming(own: list[str], inner: str) -> Callable[[str], str]:
    names = _by_key(own, inner) or {}
    paths: dict[str, str] = {}
    for path in _paths(own):
        if path.startswith(inner):
            paths.setdefault(_path_key(path.removeprefix(inner)), path)  # what is wrapped, before its wrapper

    def renamed(name: str) -> str:
        found = names.get(_key(name)) or paths.get(_path_key(name))
        if found is not None:
            return found
        # The path of a module and a member that it does not have.
        outer, _, member = name.rpartition(".")
        path = paths.get(_path_key(outer))
        return f"{inner}{name}" if path is None else f"{path}.{member}"

    return renamed


def _by_key(names: Iterable[str], front: str) -> dict[str, str] | None:
    """Names that begin so, by what is left of them without wrappers; None if two become one."""
    begin = [name for name in names if name.startswith(front)]
    found = {_key(name.removeprefix(front)): name for name in begin}
    return found if len(found) == len(begin) else None


def _key(name: str) -> str:
    path, _, member = name.rpartition(".")
    return f"{_path_key(path)}.{member}"


def _path_key(path: str) -> str:
    return ".".join(part for part in path.split(".") if f"{part}." not in (*WRAPPERS, *_ADAPTED))


def _fronts(names: Iterable[str]) -> set[str]:
    """Beginnings that are made of known names alone; one is empty."""
    found = {""}
    for name in names:
        front = ""
        for part in name.split(".")[:-1]:
            if part not in _KNOWN:
                break
            front += f"{part}."
            found.add(front)
    return found


def _paths(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        while name := name.rpartition(".")[0]:
            yield name
