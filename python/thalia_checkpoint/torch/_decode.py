"""Trees and named tensors as the objects that they were made of."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from .._leaves import NO_LEAF, tree_rules, value_of
from .._objects.text_arrays import of_numbers
from ._tree import ATTRIBUTE, TORCH_LEAVES, dtype_of, listed


def decode(tree: Any, load: Callable[[str], torch.Tensor], array: Callable[[str], Any], attributes: Any = None) -> Any:
    """The object that encode() was given; load(name) is called once for each tensor.

    attributes: as of Encoded; what is not one of these is passed over.

    Raises FormatError for a tree that breaks the rules.
    """
    decoder = Decoder(load, array)
    with tree_rules():
        found = decoder.value(tree)
        _set_attributes(found, attributes, decoder.special)
        return found


class Decoder:
    """Makes values of nodes of one tree; within tree_rules().

    load, array: give what is stored under a name, as a tensor or an array. load() is called once for each.
    """

    def __init__(self, load: Callable[[str], torch.Tensor], array: Callable[[str], Any]) -> None:
        self._load = load
        self._array = array
        self._loaded: dict[str, torch.Tensor] = {}
        self._parameters: dict[tuple[str, bool], torch.nn.Parameter] = {}
        self._with_gradients: dict[str, torch.Tensor] = {}

    def value(self, node: Any) -> Any:
        """What it stands for."""
        return value_of(node, self.special)

    def special(self, node: Mapping[str, Any]) -> Any:
        """As of value_of()."""
        if "tensor" in node:
            return self._tensor(node)
        for kind in ("array", "scalar"):
            if kind in node:
                array = self._array(node[kind])
                array = of_numbers(array, node["dtype"]) if "dtype" in node else array
                return array if kind == "array" else array[()]
        ((kind, inner),) = node.items()
        return TORCH_LEAVES[kind](inner) if kind in TORCH_LEAVES else NO_LEAF

    def _tensor(self, node: Mapping[str, Any]) -> torch.Tensor:
        name = node["tensor"]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        found = self._loaded[name]
        if "view" in node:
            found = _view(name, found, node["view"])
        if "parameter" in node:
            key = (name, bool(node["parameter"]))
            if "view" in node:
                return torch.nn.Parameter(found, requires_grad=key[1])
            if key not in self._parameters:
                self._parameters[key] = torch.nn.Parameter(found, requires_grad=key[1])
            return self._parameters[key]
        if node.get("requires_grad") is True:
            if "view" in node:
                return found.detach().requires_grad_()
            if name not in self._with_gradients:
                self._with_gradients[name] = found.detach().requires_grad_()
            return self._with_gradients[name]
        return found


def _view(name: str, stored: torch.Tensor, view: Mapping[str, Any]) -> torch.Tensor:
    shape, stride, offset = view["shape"], view["stride"], view["offset"]
    found = _as(stored, dtype_of(view["dtype"]))
    reach = offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if min([offset, *shape, *stride], default=0) < 0 or reach > found.numel():
        raise ValueError(f"{name!r}: a view of elements up to {reach}")
    return found.as_strided(shape, stride, found.storage_offset() + offset)


def _as(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bytes as elements of another dtype; what is no whole one is left out."""
    if flat.dtype == dtype:
        return flat
    return flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)


def _set_attributes(value: Any, attributes: Any, special: Callable[[dict[str, Any]], Any]) -> None:
    """Gives ordered dictionaries, by their paths, what they had besides their items."""
    left = dict(listed(attributes))
    todo: list[tuple[Any, str]] = [(value, "")]
    while todo and left:
        inner, path = todo.pop()
        if type(inner) is OrderedDict and path in left:
            setattr(inner, ATTRIBUTE, value_of(left.pop(path), special))
        if isinstance(inner, dict):
            members: Iterable[tuple[Any, Any]] = inner.items()
        elif type(inner) in (list, tuple, deque):
            members = enumerate(inner)
        else:
            continue
        todo += [(member, f"{path}.{key}" if path else str(key)) for key, member in members]
