"""Objects as trees and named tensors, of which those that share memory are one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from .._files.elements import elements
from .._files.named import Named
from .._leaves import KINDS, NO_LEAF, Walk, deque_node, described, leaf_node, plain, set_members
from .._support import collector_paused
from ..errors import UnsupportedError
from ._tensors import named, on_host, overlapping, span_of
from ._tree import ATTRIBUTE

if TYPE_CHECKING:
    from ._staging import Staging

PLAIN = (
    (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    if hasattr(torch.nn, "Buffer")
    else (
        torch.Tensor,
        torch.nn.Parameter,
    )
)


class Encoded(NamedTuple):
    """What is written of an object."""

    tree: Any
    tensors: Iterator[Named]
    """Made one by one, as the objects of many small ones keep the collector of garbage busy."""
    roles: dict[str, str]
    """The roles of tensors whose names do not tell them."""
    attributes: list[list[Any]]
    """The path of each state_dict that has _metadata, and the NODE of these."""
    staged: bool = False
    """The tensors are copies of a staging."""


class _Encoder(Walk):
    def __init__(self, instead: Callable[[Any], Any]) -> None:
        super().__init__("tensors, arrays, numbers, texts, containers of these, or objects with state_dict()")
        self._instead = instead
        self.tensors: list[torch.Tensor] = []
        self.nodes: list[dict[str, Any]] = []  # what describes each of these, and has its name
        self.arrays: list[Named] = []
        self.roles: dict[str, str] = {}
        self.attributes: list[list[Any]] = []

    def node(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        if isinstance(value, torch.Tensor):  # first, as there are the most of these
            return self._tensor(value, path, role)
        leaf = leaf_node(value)
        if leaf is not NO_LEAF:
            # What is not stored as it is, such as an IntEnum, may be an object that another has a form for.
            instead = None if type(leaf) is type(value) else self._instead(value)
            return leaf if instead is None else self.node(instead, path, role)
        with self.inside(value, path):
            return self._container(value, path, role)

    def _container(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        if (kind := KINDS.get(type(value))) is not None:
            if set(value) == {"state", "param_groups"}:
                role = "optimizer"
            if kind == "ordered" and (attributes := getattr(value, ATTRIBUTE, None)):
                self._attribute(attributes, path)
            items = [[self._key(key, path), self.node(v, (*path, str(key)), role)] for key, v in value.items()]
            return {kind: items}
        for kind, cls in (("list", list), ("tuple", tuple), ("size", torch.Size)):
            if type(value) is cls:
                return {kind: [self.node(v, (*path, str(i)), role) for i, v in enumerate(value)]}
        if type(value) is deque:
            return deque_node(value, [self.node(v, (*path, str(i)), role) for i, v in enumerate(value)])
        if isinstance(value, set | frozenset) and type(value) in (set, frozenset):
            kind = "set" if type(value) is set else "frozenset"
            return {kind: [self.node(v, (*path, str(i)), role) for i, v in enumerate(set_members(value))]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, path, role)
        state_dict = getattr(value, "state_dict", None)
        if callable(state_dict) and not isinstance(value, type):
            inner = "optimizer" if isinstance(value, torch.optim.Optimizer) else role
            return self.node(state_dict(), path, inner)
        if (instead := self._instead(value)) is not None:
            return self.node(instead, path, role)
        if (container := plain(value)) is not NO_LEAF:
            return self._container(container, path, role)
        raise self.cannot(path, described(value))

    def _attribute(self, value: Any, path: tuple[str, ...]) -> None:
        inner = _Encoder(nothing)
        try:
            node = inner.node(value, (), None)
        except UnsupportedError:
            return  # it holds versions of modules, which load without
        if not inner.tensors and not inner.arrays:
            self.attributes.append([".".join(path), node])

    def _key(self, key: Any, path: tuple[str, ...]) -> Any:
        # Most are such texts, and are stored as they are.
        return key if type(key) is str and key.isascii() else self.node(key, (*path, "key"), None)

    def _array(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        name = self.name(path)
        self.arrays.append(Named(name, *elements(name, value)))
        if role is not None:
            self.roles[name] = role
        return {"scalar" if isinstance(value, np.generic) else "array": name}

    def _tensor(self, value: torch.Tensor, path: tuple[str, ...], role: str | None) -> Any:
        if type(value) not in PLAIN:
            raise self.cannot(path, f"the tensor subclass {type(value).__qualname__}")
        name = self.name(path)
        if role is not None:
            self.roles[name] = role
        node: dict[str, Any] = {"tensor": name}
        if type(value) is torch.nn.Parameter:  # isinstance() takes ten times as long
            node["parameter"] = value.requires_grad
        elif value.requires_grad:
            node["requires_grad"] = True
        self.tensors.append(value)
        self.nodes.append(node)
        return node


def nothing(_: Any) -> None:
    """Has nothing to save instead of an object."""


def encode(value: Any, instead: Callable[[Any], Any] = nothing, staging: Staging | None = None) -> Encoded:
    """The tree of an object, and its tensors; those that share memory once.

    instead: gives what to save of an object that save() does not take; None if it has nothing.
    staging: if it takes one of the tensors it has copies of all that is written; they are there
        once all tensors were gone through and staging.wait() is back.
    """
    encoder = _Encoder(instead)
    with collector_paused():
        tree = encoder.node(value, (), None)
    stored: dict[int, torch.Tensor | None] = {}
    for group in overlapping(encoder.tensors):
        first, *others = group
        stored[first] = _stored_once([encoder.tensors[i] for i in group], [encoder.nodes[i] for i in group])
        stored |= dict.fromkeys(others)
    staged = staging is not None and any(map(staging.takes, encoder.tensors))
    tensors = _tensors_of(encoder, stored, staging if staged else None)
    return Encoded(tree, tensors, encoder.roles, encoder.attributes, staged)


def _tensors_of(
    encoder: _Encoder, stored: Mapping[int, torch.Tensor | None], staging: Staging | None
) -> Iterator[Named]:
    """stored: of tensors that lie in each other's memory, what is stored instead of each of them, if anything."""
    host = on_host if staging is None else staging.tensor
    for array in encoder.arrays:
        yield array if staging is None else array._replace(data=staging.array(array.data))
    for i, (tensor, node) in enumerate(zip(encoder.tensors, encoder.nodes, strict=True)):
        if (what := stored.get(i, tensor)) is not None:
            yield named(node["tensor"], what, host)
    if staging is not None:
        staging.begun()


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def _stored_once(tensors: list[torch.Tensor], nodes: list[dict[str, Any]]) -> torch.Tensor:
    """What is stored of tensors that lie in each other's memory; their nodes tell where they are in it."""
    first = tensors[0]
    for node in nodes:
        node["tensor"] = nodes[0]["tensor"]
    if all(_geometry(tensor) == _geometry(first) for tensor in tensors):
        return first
    # Different views: the part of the storage that they lie in, as bytes where their dtypes differ,
    # and where each of them does.
    spans = [span_of(tensor) for tensor in tensors]
    low, high = min(begin for begin, _ in spans), max(end for _, end in spans)
    dtypes = {tensor.dtype for tensor in tensors}
    dtype = dtypes.pop() if len(dtypes) == 1 else torch.uint8
    if dtype == torch.uint8:
        # Whole elements of every dtype, where the storage has them.
        low -= low % 16
        high = min(high + -high % 16, first.untyped_storage().nbytes())
    storage = torch.empty(0, dtype=dtype, device=first.device)
    width = storage.element_size()
    size = (high - low) // width
    storage.set_(first.untyped_storage(), low // width, torch.Size([size]), (1,))
    for tensor, node, (begin, _) in zip(tensors, nodes, spans, strict=True):
        node["view"] = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "offset": (begin - low) // tensor.element_size(),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
        }
    return storage
