"""A brain's state as trees of the library: JSON with tensors among its leaves. docs/format/states.md, "States".

What Python has and JSON has not is stored as {"_type": "python", "_kind": KIND, "_value": VALUE}: other
programs keep such objects, and find the tensors in them.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._leaves import DEPTH, KINDS, NO_LEAF, described, is_text, leaf_node, method_of, plain, set_members
from .._objects.classes import class_name, parts_of
from .._objects.text_arrays import as_numbers
from ..errors import UnsupportedError, make_error
from ._arrays import borrowed, is_torch
from ._state import BrainRegion, BrainState, LazyRegion

#: What comes back as a dictionary; an OrderedDict and a Counter as themselves.
DICTIONARIES = (dict, OrderedDict, defaultdict, Counter, BrainState, BrainRegion, LazyRegion)
#: What gives the state of an object, and what takes it.
STATE_METHODS = {"get_full_state": "load_full_state", "state_dict": "load_state_dict"}


class Kinds:
    """Which arrays a whole state has. Where torch's are among them, numpy's are marked."""

    def __init__(self) -> None:
        self.torch = False
        self._marked: dict[int, dict[str, Any]] = {}

    def numpy(self, tensor: Any) -> dict[str, Any]:
        marked = python("numpy", tensor)
        self._marked[id(marked)] = marked
        return marked

    @property
    def arrays(self) -> str:
        """What arrays without a mark are, once all were seen."""
        return "torch" if self.torch else "numpy"

    def unmarked(self, node: Any) -> Any:
        """A node without the marks that say nothing, once all arrays were seen."""
        if self.torch or not self._marked:
            return node
        if isinstance(node, dict):
            if id(node) in self._marked:
                return node["_value"]
            return {key: self.unmarked(member) for key, member in node.items()}
        return [self.unmarked(item) for item in node] if isinstance(node, list) else node


def python(kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"_type": "python", "_kind": kind, **more, "_value": value}


class RegionEncoder:
    """Encodes the components of one region. where: the region, for errors."""

    def __init__(self, where: str, kinds: Kinds) -> None:
        self._where = where
        self._kinds = kinds
        self._open: set[int] = set()  # containers that this one lies in
        self.states: dict[int, tuple[Any, Any]] = {}
        """By the id of an object that has a state of its own: the object, and that state."""

    def component(self, name: str, value: Any) -> Any:
        """The component's node in the tree."""
        return self._node(value, name)

    def _node(self, value: Any, path: str) -> Any:
        if type(value) is float:
            return value
        if isinstance(value, enum.Enum):
            return self._node(value.value, path)
        leaf = leaf_node(value)
        if leaf is not NO_LEAF:
            return python("leaf", leaf) if isinstance(leaf, dict) else leaf
        if is_torch(value):
            self._kinds.torch = True
            return self._tensor(value, path)
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            kind = "numpy" if isinstance(value, np.ndarray) else "numpy_scalar"
            if (numbers := as_numbers(value)) is not None:
                return python(kind, self._tensor(numbers[0], path), _dtype=numbers[1])
            tensor = self._tensor(value, path)
            return self._kinds.numpy(tensor) if kind == "numpy" else python(kind, tensor)
        if id(value) in self._open:
            raise self._cannot(path, "a container that holds itself")
        if len(self._open) >= DEPTH:
            raise self._cannot(path, f"more than {DEPTH} containers in each other")
        self._open.add(id(value))
        try:
            return self._container(value, path)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind in DICTIONARIES:
            return self._mapping(value, path)
        if kind is list:
            return self._items(value, path)
        if kind is deque:
            return python("deque", self._items(value, path), _maxlen=value.maxlen)
        if kind in (tuple, set, frozenset):
            items = self._items(value if kind is tuple else set_members(value), path)
            if kind is not tuple:
                self._distinct(items, path)
            return python(kind.__name__, items)
        if dataclasses.is_dataclass(kind):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return python("dataclass", self._mapping(fields, path), _class=f"{kind.__module__}.{kind.__qualname__}")
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.dtype):
                return python("dtype", str(value).removeprefix("torch."))
            if isinstance(value, torch.device):
                return python("device", str(value))
            if kind is torch.Size:
                return python("size", list(value))
        for method in STATE_METHODS:
            if (state := method_of(value, method)) is not None:
                own = state()
                self.states[id(value)] = value, own
                return self._node(own, path)
        if (container := plain(value)) is not NO_LEAF:
            return self._container(container, path)
        if (parts := parts_of(value)) is not NO_LEAF:
            return python("named", self._container(parts, path), _class=class_name(value))
        raise self._cannot(path, described(value))

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        kept = KINDS.get(type(value), "dict")
        mark = value.get("_type")  # anything: an array compares its elements
        is_object = kept == "dict" and all(type(key) is str and is_text(key) for key in value)
        if not is_object or (isinstance(mark, str) and mark == "python"):
            pairs = [
                [self._node(key, f"{path}.key"), self._node(member, f"{path}.{key}")] for key, member in value.items()
            ]
            self._distinct([key for key, _ in pairs], path)
            return python(kept, pairs)
        return {key: self._node(member, f"{path}.{key}") for key, member in value.items()}

    def _distinct(self, nodes: list[Any], path: str) -> None:
        """Members of enumerations become their values, which may be those of others."""
        if len(set(map(repr, nodes))) != len(nodes):
            raise self._cannot(path, "keys or members of a set that become the same")

    def _items(self, value: Any, path: str) -> list[Any]:
        return [self._node(v, f"{path}[{i}]") for i, v in enumerate(value)]

    def _tensor(self, value: Any, path: str) -> Any:
        try:
            return borrowed(path, value)
        except UnsupportedError as error:
            raise self._cannot(path, str(error).removeprefix(f"{path}: ")) from error

    def _cannot(self, path: str, what: str) -> Exception:
        where = f"{self._where}.{path}"
        what = what if what.startswith(("cannot", "a file cannot", "a tensor")) else f"cannot save {what}"
        return make_error(
            UnsupportedError,
            f"{where}: {what}; expected tensors, arrays, numbers, texts, containers and dataclasses of these, or "
            "objects with get_full_state() or state_dict()",
            "unsupported_feature",
            field=where,
            value=what,
        )
