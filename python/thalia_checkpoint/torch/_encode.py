"""Objects as trees and named tensors, of which those that share memory are one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .._files.named import Named
from .._leaves import NO_LEAF
from .._objects.classes import named
from .._objects.encoder import Encoder, Instead, nothing
from .._support import collector_paused
from ..errors import UnsupportedError
from ._tensors import named as named_tensor
from ._tensors import not_dense, on_host, overlapping, span_of, stored_as
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


class _Encoder(Encoder):
    def __init__(self, instead: Instead, *, converts: bool = True) -> None:
        expected = "tensors, arrays, numbers, texts, containers of these, or objects with state_dict()"
        super().__init__(expected, instead, converts=converts)
        self.tensors: list[torch.Tensor] = []
        self.nodes: list[dict[str, Any]] = []  # what describes each of these, and has its name
        self.attributes: list[list[Any]] = []

    def node(self, value: Any, path: tuple[str, ...], role: str | None = None) -> Any:
        if isinstance(value, torch.Tensor):  # first, as there are the most of these
            return self._tensor(value, path, role)
        return super().node(value, path, role)

    def special(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        if type(value) is torch.Size:
            return {"size": list(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout | torch.memory_format | torch.qscheme):
            return named(str(value), value)
        if isinstance(value, torch.Generator):
            instead = self._instead(value)
            if instead is not None:
                return self.node(instead, path, role)
            return named(self.node(value.get_state(), path, role), value)
        if isinstance(value, torch.optim.Optimizer):
            return self.node(value.state_dict(), path, "optimizer")
        return NO_LEAF

    def ordered(self, value: Any, path: tuple[str, ...]) -> None:
        if attributes := getattr(value, ATTRIBUTE, None):
            self._attribute(attributes, path)

    def _attribute(self, value: Any, path: tuple[str, ...]) -> None:
        inner = _Encoder(nothing)
        try:
            node = inner.node(value, ())
        except UnsupportedError:
            return  # it holds versions of modules, which load without
        if not inner.tensors and not inner.arrays:
            self.attributes.append([".".join(path), node])

    def _tensor(self, value: torch.Tensor, path: tuple[str, ...], role: str | None) -> Any:
        subclass = type(value) not in PLAIN
        if (subclass or not_dense(value) is not None) and (instead := self._instead(value)) is not None:
            return self._in_place(value, instead, path, role)
        if subclass:
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


def encode(value: Any, instead: Instead = nothing, staging: Staging | None = None, *, converts: bool = True) -> Encoded:
    """The tree of an object, and its tensors; those that share memory once.

    instead: gives what to save of an object that save() does not take; None if it has nothing.
    staging: if it takes one of the tensors it has copies of all that is written; they are there
        once all tensors were gone through and staging.wait() is back.
    converts: as of Encoder.
    """
    encoder = _Encoder(instead, converts=converts)
    with collector_paused():
        tree = encoder.node(value, ())
    stored: dict[int, torch.Tensor | None] = {}
    for group in overlapping(encoder.tensors):
        first, *others = group
        stored[first] = _stored_once([encoder.tensors[i] for i in group], [encoder.nodes[i] for i in group])
        stored |= dict.fromkeys(others)
    staged = staging is not None and any(map(staging.takes, encoder.tensors))
    tensors = _tensors_of(encoder, stored, staging if staged else None)
    return Encoded(tree, tensors, encoder.roles, encoder.attributes, staged)


def check(value: Any, instead: Instead = nothing) -> None:
    """Raises what encode() raises, and what its tensors do, of which none is read. Those of the device meta may
    become others."""
    encoder = _Encoder(instead)
    with collector_paused():
        encoder.node(value, ())
    for tensor, node in zip(encoder.tensors, encoder.nodes, strict=True):
        if not tensor.is_meta:
            stored_as(node["tensor"], tensor)


def is_lazy(part: Any) -> bool:
    """Whether it is a module with parameters or buffers that its first call makes."""
    if not isinstance(part, torch.nn.Module):
        return False
    return any(map(torch.nn.parameter.is_lazy, itertools.chain(part.parameters(), part.buffers())))


def _tensors_of(
    encoder: _Encoder, stored: Mapping[int, torch.Tensor | None], staging: Staging | None
) -> Iterator[Named]:
    """stored: of tensors that lie in each other's memory, what is stored instead of each of them, if anything."""
    host = on_host if staging is None else staging.tensor
    for array in encoder.arrays:
        yield array if staging is None else array._replace(data=staging.array(array.data))
    for i, (tensor, node) in enumerate(zip(encoder.tensors, encoder.nodes, strict=True)):
        if (what := stored.get(i, tensor)) is not None:
            yield named_tensor(node["tensor"], what, host)
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
