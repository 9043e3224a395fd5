"""A region's state as the members of its components in JSON and named tensors. docs/format/states.md, "States".

What Python has and JSON has not stands as {"_type": "python", "_kind": KIND, "_value": VALUE}: other
programs keep such objects, and find the tensors in them.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._brain_arrays import FLOATS, is_torch, named_of, sparse_of
from ._brain_metadata import number_node
from ._brain_state import BrainRegion, BrainState, LazyRegion
from ._flat import Named
from ._leaves import DEPTH, KINDS, NO_LEAF, described, is_text, leaf_node, plain, set_members
from ._tensor import CooArrays
from .errors import UnsupportedError, make_error

VERSION = 1
#: What comes back as a dictionary; an OrderedDict and a Counter as themselves.
DICTIONARIES = (dict, OrderedDict, defaultdict, Counter, BrainState, BrainRegion, LazyRegion)
#: What `_type` says of objects that stand for something else.
TYPES = ("tensor", "scalar", "config", "number", "object", "python")
ROLES = {
    "weights": "weights",
    "biases": "bias",
    "normalization": "normalization",
    "embeddings": "embedding",
    "homeostatic": "homeostatic",
    "region_state": "region_state",
    "neuron_state": "region_state",
    "learning_state": "learning_state",
    "oscillator_state": "oscillator",
    "oscillators": "oscillator",
    "neuromodulator_state": "neuromodulator",
    "neuromodulators": "neuromodulator",
    "optimizer_state": "optimizer",
    "buffers": "buffer",
}


class Stored(NamedTuple):
    """A tensor of a region."""

    tensor: Named
    role: str
    component: str
    entries: CooArrays | None
    """Where it is stored sparse."""


class Kinds:
    """Which arrays a whole state has. Where torch's are among them, numpy's are marked."""

    def __init__(self) -> None:
        self.torch = False
        self._numpy: list[dict[str, Any]] = []

    def numpy(self, node: dict[str, Any]) -> dict[str, Any]:
        marked = python("numpy", node)
        self._numpy.append(marked)
        return marked

    def settle(self) -> str:
        """Takes back marks that say nothing; "torch" or "numpy", what arrays without a mark are."""
        if self.torch:
            return "torch"
        for marked in self._numpy:
            node = marked["_value"]
            marked.clear()
            marked.update(node)
        return "numpy"


def python(kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"_type": "python", "_kind": kind, **more, "_value": value}


class RegionEncoder:
    """Encodes the components of one region.

    where: the region, for errors. by_name: roles of tensors below components of no role of their
    own are what their names tell. origins: say which types floats have, as they may be converted.
    sparse: store what is mostly zeros as its entries. role: of components that have none of their
    own.
    """

    def __init__(
        self, where: str, kinds: Kinds, *, by_name: bool, origins: bool, sparse: bool, role: str | None
    ) -> None:
        self._role = role
        self._origins = origins
        self._sparse = sparse
        self.tensors: list[Stored] = []
        self._where = where
        self._kinds = kinds
        self._by_name = by_name
        self._names: set[str] = set()
        self._open: set[int] = set()  # containers that this one lies in

    def component(self, name: str, value: Any) -> Any:
        """The component's node in the tree; its tensors are in `tensors` then."""
        return self._node(value, name, "", ROLES.get(name, self._role))

    def _node(self, value: Any, component: str, path: str, role: str | None) -> Any:
        kind = type(value)
        # A policy of precisions would round them, and a reader takes scalars of f64 and i64 alone.
        if role in ("oscillator", "neuromodulator") and not self._origins and _is_scalar(value):
            array = np.asarray(value, np.int64 if kind is int else np.float64)
            return {"_type": "scalar", "_name": self._add(array, component, path, role).tensor.name}
        if kind is float and not math.isfinite(value):
            return number_node(value)
        leaf = leaf_node(value)
        if leaf is not NO_LEAF:
            return python("leaf", leaf) if isinstance(leaf, dict) else leaf
        if is_torch(value):
            self._kinds.torch = True
            return self._tensor(value, component, path, role)
        if isinstance(value, np.ndarray | np.generic):
            node = self._tensor(value, component, path, role)
            return self._kinds.numpy(node) if isinstance(value, np.ndarray) else python("numpy_scalar", node)
        if id(value) in self._open:
            raise self._cannot(component, path, "a container that holds itself")
        if len(self._open) >= DEPTH:
            raise self._cannot(component, path, f"more than {DEPTH} containers in each other")
        self._open.add(id(value))
        try:
            return self._container(value, component, path, role)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, component: str, path: str, role: str | None) -> Any:
        kind = type(value)
        if kind in DICTIONARIES:
            return self._mapping(value, component, path, role)
        if kind is list:
            return self._items(value, component, path, role)
        if kind is deque:
            return python("deque", self._items(value, component, path, role), _maxlen=value.maxlen)
        if kind in (tuple, set, frozenset):
            members = value if kind is tuple else set_members(value)
            items = self._items(members, component, path, role)
            if kind is not tuple:
                self._distinct(items, component, path)
            return python(kind.__name__, items)
        if dataclasses.is_dataclass(kind):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            node = self._mapping(fields, component, path, role)
            return python("dataclass", node, _class=f"{kind.__module__}.{kind.__qualname__}")
        if isinstance(value, enum.Enum):
            return self._node(value.value, component, path, role)
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.dtype):
                return python("dtype", str(value).removeprefix("torch."))
            if isinstance(value, torch.device):
                return python("device", str(value))
            if kind is torch.Size:
                return python("size", list(value))
        for method in ("get_full_state", "state_dict"):
            state = getattr(value, method, None)
            if callable(state) and not isinstance(value, type):
                return self._node(state(), component, path, role)
        if (container := plain(value)) is not NO_LEAF:
            return self._container(container, component, path, role)
        raise self._cannot(component, path, described(value))

    def _mapping(self, value: Mapping[Any, Any], component: str, path: str, role: str | None) -> Any:
        role = "optimizer" if is_optimizer(value) else role
        kept = KINDS.get(type(value), "dict")
        if kept != "dict" or not all(type(key) is str and is_text(key) for key in value):
            pairs = [
                [
                    self._node(key, component, _below(path, "key"), None),
                    self._node(v, component, _below(path, str(key)), role),
                ]
                for key, v in value.items()
            ]
            self._distinct([key for key, _ in pairs], component, path)
            return python(kept, pairs)
        node = {key: self._node(v, component, _below(path, key), role) for key, v in value.items()}
        kind = value.get("_type")  # anything: an array compares its elements
        return {"_type": "object", "_members": node} if isinstance(kind, str) and kind in TYPES else node

    def _distinct(self, nodes: list[Any], component: str, path: str) -> None:
        """Members of enumerations become their values, which may be those of others."""
        if len(set(map(repr, nodes))) != len(nodes):
            raise self._cannot(component, path, "keys or members of a set that become the same")

    def _items(self, value: Any, component: str, path: str, role: str | None) -> list[Any]:
        return [self._node(v, component, f"{path}[{i}]", role) for i, v in enumerate(value)]

    def _tensor(self, value: Any, component: str, path: str, role: str | None) -> dict[str, Any]:
        stored = self._add(value, component, path, role)
        node: dict[str, Any] = {"_type": "tensor", "_name": stored.tensor.name}
        if stored.entries is not None:
            node["_dense"] = True
        if self._origins and stored.tensor.dtype in FLOATS:
            node["_dtype"] = stored.tensor.dtype
        return node

    def _add(self, value: Any, component: str, path: str, role: str | None) -> Stored:
        whole = component + path if path.startswith("[") else _below(component, path) if path else component
        name = path if path and not path.startswith("[") else whole
        if name in self._names:
            name = whole
        unique, n = name or "tensor", 1
        while unique in self._names:
            n += 1
            unique = f"{name}~{n}"
        self._names.add(unique)
        try:
            tensor = named_of(unique, value)
        except UnsupportedError as error:
            raise self._cannot(component, path, str(error).removeprefix(f"{unique}: ")) from error
        if role is None:
            role = _core.role_of_name(whole, len(tensor.shape)) if self._by_name else "other"
        stored = Stored(tensor, role, component, sparse_of(tensor) if self._sparse else None)
        self.tensors.append(stored)
        return stored

    def _cannot(self, component: str, path: str, what: str) -> Exception:
        inner = _below(component, path) if path and not path.startswith("[") else component + path
        where = f"{self._where}.{inner}"
        what = what if what.startswith(("cannot", "a file cannot", "a tensor")) else f"cannot save {what}"
        return make_error(
            UnsupportedError,
            f"{where}: {what}; expected tensors, arrays, numbers, texts, containers and dataclasses of these, or "
            "objects with get_full_state() or state_dict()",
            "unsupported_feature",
            field=where,
            value=what,
        )


def is_optimizer(state: Mapping[Any, Any]) -> bool:
    """Whether it is what an optimizer of torch tells of itself."""
    return set(state) == {"state", "param_groups"}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_scalar(value: Any) -> bool:
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 63
    return type(value) is float and math.isfinite(value)


def is_plain(node: Any) -> bool:
    """Whether a node of the tree is JSON and nothing else: no object in it stands for something."""
    if isinstance(node, dict):
        return node.get("_type") not in TYPES and all(map(is_plain, node.values()))
    return not isinstance(node, list) or all(map(is_plain, node))
