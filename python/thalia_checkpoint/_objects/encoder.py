"""Objects as trees and named arrays. No torch is needed.

docs/use/python.md, "What a tree looks like".
"""

from __future__ import annotations

import datetime
import enum
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._files.elements import elements
from .._files.named import Named
from .._leaves import KINDS, NO_LEAF, Walk, deque_node, described, leaf_node, method_of, plain, set_members
from .classes import class_name, named, parts_of
from .text_arrays import as_numbers

#: NODEs that are no keys.
_NO_KEYS = frozenset((*KINDS.values(), "list", "set", "deque", "array"))
_PLAIN = frozenset((int, float, complex, bytes))
#: Gives what to save instead of an object; None where it has nothing.
Instead = Callable[[Any], Any]


def nothing(_: Any) -> None:
    """Has nothing to save instead of an object."""


class Encoder(Walk):
    """Makes the NODEs of one tree. Those of a framework are made by a class of its own."""

    def __init__(self, expected: str, instead: Instead, *, converts: bool = True) -> None:
        """expected: as of Walk. instead: is asked for all that is not stored as it is; converts: it is an option
        of the caller's, called convert."""
        super().__init__(f"{expected}; convert= may make one of these of it" if converts else expected)
        self._instead = instead
        self.arrays: list[Named] = []
        self.roles: dict[str, str] = {}
        """The roles of tensors whose names do not tell them."""

    def node(self, value: Any, path: tuple[str, ...], role: str | None = None) -> Any:
        leaf = leaf_node(value)
        if leaf is not NO_LEAF and (type(leaf) is type(value) or type(value) in _PLAIN):
            return leaf
        if leaf is not NO_LEAF and not isinstance(value, enum.Enum):
            # What is not stored as it is may be an object that another has a form for.
            instead = self._instead(value)
            return leaf if instead is None else self._in_place(value, instead, path, role)
        with self.inside(value, path):
            return self._container(value, path, role)

    def special(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        """The NODE of what the framework alone knows; NO_LEAF for anything else."""
        return NO_LEAF

    def ordered(self, value: Any, path: tuple[str, ...]) -> None:
        """Called for each OrderedDict."""

    def _in_place(self, value: Any, instead: Any, path: tuple[str, ...], role: str | None) -> Any:
        with self.inside(value, path):
            return self.node(instead, path, role)

    def _container(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        cls = type(value)
        if (kind := KINDS.get(cls)) is not None:
            return {kind: self._items(value, kind, path, role)}
        if cls is list or cls is tuple:
            return {cls.__name__: [self.node(v, (*path, str(i)), role) for i, v in enumerate(value)]}
        if cls is deque:
            return deque_node(value, [self.node(v, (*path, str(i)), role) for i, v in enumerate(value)])
        if cls is set or cls is frozenset:
            members = set_members(value)
            nodes = [self.node(_key(v), (*path, str(i)), role) for i, v in enumerate(members)]
            self._check_keys(members, nodes, path)
            return {cls.__name__: nodes}
        if (found := self.special(value, path, role)) is not NO_LEAF:
            return found
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype != object:
                return self._array(value, path, role)
        elif (state_dict := method_of(value, "state_dict")) is not None:
            return self.node(state_dict(), path, role)
        elif hasattr(type(value), "__dlpack__"):
            return self._array(value, path, role)
        if (instead := self._instead(value)) is not None:
            return self.node(instead, path, role)
        if isinstance(value, enum.Enum):
            return named(self.node(value.value, path, role), value, value.name)
        if (container := plain(value)) is not NO_LEAF:
            return self._container(container, path, role)
        if (parts := parts_of(value)) is not NO_LEAF:
            return named(self._container(parts, path, role), value)
        if isinstance(value, datetime.date | datetime.time | datetime.timedelta):  # with a class of its own
            return named(str(value), value)
        raise self.cannot(path, described(value))

    def _items(self, value: Any, kind: str, path: tuple[str, ...], role: str | None) -> list[Any]:
        if set(value) == {"state", "param_groups"}:
            role = "optimizer"
        if kind == "ordered":
            self.ordered(value, path)
        items = []
        checked = True
        for key, v in value.items():
            # Most are such texts, and are stored as they are.
            if type(key) is str and key.isascii():
                items.append([key, self.node(v, (*path, key), role)])
                continue
            checked = checked and isinstance(key, int | float | str)
            items.append([self.node(_key(key), (*path, "key")), self.node(v, (*path, str(_key(key))), role)])
        if not checked:
            self._check_keys(value, [key for key, _ in items], path)
        return items

    def _check_keys(self, keys: Iterable[Any], nodes: list[Any], path: tuple[str, ...]) -> None:
        """Raises UnsupportedError for keys that come back as what Python has no keys of, or as the same."""
        seen: set[str] = set()
        for key, node in zip(keys, nodes, strict=True):
            if not _is_key(node):
                raise self.cannot(path, f"a key, or a member of a set, of the class {class_name(key)}")
            if (text := repr(node)) in seen:
                raise self.cannot(path, "keys, or members of a set, that become the same")
            seen.add(text)

    def _array(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        name = self.name(path)
        kind = "scalar" if isinstance(value, np.generic) else "array"
        node = {kind: name}
        if isinstance(value, np.ndarray | np.generic) and (found := as_numbers(value)) is not None:
            value, node["dtype"] = found
        self.arrays.append(Named(name, *elements(name, value)))
        if role is not None:
            self.roles[name] = role
        return node


def _key(key: Any) -> Any:
    """Without the class of an enumeration: programs look for keys by their texts, and two are to differ."""
    return key.value if isinstance(key, enum.Enum) else key


def _is_key(node: Any) -> bool:
    """Whether what it stands for may be a key of a dictionary."""
    if not isinstance(node, dict):
        return True
    if not _NO_KEYS.isdisjoint(node):
        return False
    return all(_is_key(inner) for kind in ("tuple", "frozenset", "size") for inner in node.get(kind, ()))
