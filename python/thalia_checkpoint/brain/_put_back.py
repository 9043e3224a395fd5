"""What the library made of a state, put where the old was: in the same dictionaries, lists and objects, with
the kinds of arrays, types and devices that were there. Nothing changes before all of it is known to fit.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._leaves import NO_LEAF, leaf_node, plain
from ..errors import UnsupportedError, make_error
from ._arrays import is_torch, reader
from ._decode import Dialect, decode_region
from ._tree import DICTIONARIES, STATE_METHODS


class PutBack:
    """Looks through a state and the trees that were made of it; apply() then makes the changes."""

    def __init__(self, dialect: Dialect) -> None:
        """dialect: for what has no counterpart in the state."""
        self._dialect = dialect
        self._later: list[Callable[[], object]] = []

    def later(self, change: Callable[[], object]) -> None:
        """To be called by apply(), after those before it."""
        self._later.append(change)

    def apply(self) -> None:
        for change in self._later:
            change()

    def members(self, found: Any, tree: Mapping[str, Any], states: Mapping[int, tuple[Any, Any]], where: str) -> bool:
        """Looks at the components of a region, and the tree of each. Whether something changes.

        states: those of objects in it, as they were asked for. Raises UnsupportedError, naming the place, where
        something has changed in what cannot take it.
        """
        before = len(self._later)
        _Walk(self, states).members(found, tree, where)
        return len(self._later) != before

    def array(self, old: Any, node: Any) -> Any:
        """The array or tensor that takes the old one's place: that itself, if nothing has changed."""
        node = _inner(node)
        return old if node is ... else like(old, node)

    def decoded(self, node: Any, where: str) -> Any:
        return decode_region(where, {"value": node}, self._dialect)["value"]


class _Walk:
    def __init__(self, to: PutBack, states: Mapping[int, tuple[Any, Any]]) -> None:
        self._to = to
        self._states = states

    def members(self, found: Any, tree: Mapping[str, Any], where: str) -> None:
        for name, node in tree.items():
            if name not in found:
                new = self._to.decoded(node, where)
            else:
                new = self._value(found[name], node, f"{where}.{name}")
                if new is found[name]:
                    continue
            self._to.later(partial(operator.setitem, found, name, new))

    def _value(self, value: Any, node: Any, where: str) -> Any:
        """What takes the value's place: itself, as a rule, with what is in it changed later."""
        if node is ...:
            return value
        if is_torch(value) or isinstance(value, np.ndarray | np.generic):
            inner = _inner(node)
            if inner is ... or isinstance(inner, _core.LoadedTensor):
                return value if inner is ... else like(value, inner)
            return self._to.decoded(node, where)
        leaf = leaf_node(value)
        if leaf is not NO_LEAF:
            return self._leaf(value, leaf, node, where)
        return self._container(value, node, where)

    def _leaf(self, value: Any, leaf: Any, node: Any, where: str) -> Any:
        was = {"_type": "python", "_kind": "leaf", "_value": leaf} if isinstance(leaf, dict) else leaf
        if node == was and isinstance(node, bool) == isinstance(was, bool):
            return value
        if type(value) is float and type(node) is int:
            return float(node)
        return self._to.decoded(node, where)

    def _container(self, value: Any, node: Any, where: str) -> Any:
        kind = type(value)
        if kind in DICTIONARIES:
            return self._mapping(value, node, where)
        if isinstance(value, enum.Enum):
            new = self._value(value.value, node, where)
            return value if new is value.value else new
        if dataclasses.is_dataclass(kind):
            return self._dataclass(value, node, where)
        if id(value) in self._states:
            return self._object(value, node, where)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.dtype | torch.device | torch.Size):
            new = self._to.decoded(node, where)
            return value if new == value or str(value).endswith(str(new)) else new
        if isinstance(value, dict):
            return self._mapping(value, node, where)
        if isinstance(value, list | deque):
            return self._listed(value, node, where)
        if isinstance(value, tuple):
            return self._tuple(value, node, where)
        if isinstance(value, set | frozenset):
            new = self._to.decoded(node, where)
            return value if new == value else new
        raise _cannot(where, plain(value))

    def _mapping(self, value: Any, node: Any, where: str) -> Any:
        inner = _inner(node)
        if isinstance(inner, dict):
            self.members(value, inner, where)
            return value
        if isinstance(inner, list) and len(inner) == len(value):
            for (key, member), (_, new_node) in zip(list(value.items()), inner, strict=True):
                new = self._value(member, new_node, f"{where}.{key}")
                if new is not member:
                    self._to.later(partial(operator.setitem, value, key, new))
            return value
        return self._to.decoded(node, where)

    def _items(self, value: Any, node: Any, where: str) -> list[Any] | None:
        """What takes the place of each; None where there are not as many."""
        inner = _inner(node)
        if not isinstance(inner, list) or len(inner) != len(value):
            return None
        return [self._value(item, inner[i], f"{where}[{i}]") for i, item in enumerate(value)]

    def _listed(self, value: Any, node: Any, where: str) -> Any:
        items = self._items(value, node, where)
        if items is None:
            return self._to.decoded(node, where)
        for i, (old, new) in enumerate(zip(value, items, strict=True)):
            if new is not old:
                self._to.later(partial(operator.setitem, value, i, new))
        return value

    def _tuple(self, value: tuple[Any, ...], node: Any, where: str) -> Any:
        items = self._items(value, node, where)
        if items is None:
            return self._to.decoded(node, where)
        if all(new is old for old, new in zip(value, items, strict=True)):
            return value
        make = getattr(value, "_make", None)  # of a named tuple
        return tuple(items) if make is None else make(items)

    def _dataclass(self, value: Any, node: Any, where: str) -> Any:
        inner = _inner(node)
        if not isinstance(inner, dict):
            return self._to.decoded(node, where)
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = self._value(old, inner[field.name], f"{where}.{field.name}") if field.name in inner else old
            if new is not old:
                self._to.later(partial(object.__setattr__, value, field.name, new))
        return value

    def _object(self, value: Any, node: Any, where: str) -> Any:
        state = self._states[id(value)][1]
        before = len(self._to._later)
        new = self._value(state, node, where)
        if len(self._to._later) == before and new is state:
            return value
        methods = (put for give, put in STATE_METHODS.items() if hasattr(value, give))
        take = next((found for put in methods if callable(found := getattr(value, put, None))), None)
        if take is None:
            raise _cannot(where, value)
        self._to.later(lambda: take(new))
        return value


def _inner(node: Any) -> Any:
    """What a node of type python stands for; any other itself."""
    return node["_value"] if isinstance(node, dict) and node.get("_type") == "python" else node


def like(old: Any, tensor: _core.LoadedTensor) -> Any:
    """An array or tensor of these elements that is of the kind, type and device of another."""
    if not is_torch(old):
        new = reader("numpy")(tensor)
        new = new.astype(old.dtype, copy=False)
        return new if isinstance(old, np.ndarray) else new[()]
    import torch

    new = reader("torch", old.device)(tensor)
    if old.layout != torch.strided:
        new = new.to_sparse(layout=old.layout)
    if type(old) is not torch.Tensor:  # Parameter, Buffer
        return type(old)(new, requires_grad=old.requires_grad)
    return new.requires_grad_(old.requires_grad and old.is_leaf)


def _cannot(where: str, value: object) -> Exception:
    name = type(value).__qualname__
    return make_error(
        UnsupportedError,
        f"{where}: {name} cannot take what has changed in it; expected load_full_state() or load_state_dict()",
        "unsupported_feature",
        field=where,
        value=name,
    )
