"""Nested containers with tensors as a JSON tree and named tensors, and back. No pickle.

The file's metadata has the tree as {"thalia_checkpoint": {"version": 1, "tree": NODE}}. A NODE is
null, a boolean, a text or a finite number as it is, or an object with one member that tells
what it is: docs/use/python.md, "What a tree looks like". Beside it, as {"pt": {"attributes": [[PATH,
NODE], …]}}, stands what torch calls the _metadata of a state_dict.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from .._files.any_file import AnyFile
from .._files.elements import elements
from .._files.file import File
from .._files.named import Named
from .._leaves import (
    CONTAINERS,
    KINDS,
    MAPPINGS,
    MEMBER,
    NO_LEAF,
    Walk,
    deque_node,
    described,
    leaf_node,
    plain,
    set_members,
    tree_rules,
    value_of,
)
from .._support import collector_paused
from ..errors import UnsupportedError
from ._tensors import named, on_host, overlapping, span_of

if TYPE_CHECKING:
    from ._staging import Staging

#: Of a node of these, each of which has the name of what is stored.
TENSORS = frozenset(("tensor", "array", "scalar"))
#: Of a state_dict; load_state_dict() looks at it.
ATTRIBUTE = "_metadata"
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
    """Of tensors whose names do not tell."""
    attributes: list[list[Any]]
    """Of each state_dict that has _metadata, its path and the NODE of these."""
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
            # What does not stand as it is, such as an IntEnum, may be an object that another has a form for.
            instead = None if type(leaf) is type(value) else self._instead(value)
            return leaf if instead is None else self.node(instead, path, role)
        with self.inside(value, path):
            return self._container(value, path, role)

    def _container(self, value: Any, path: tuple[str, ...], role: str | None) -> Any:
        if (kind := KINDS.get(type(value))) is not None:
            if set(value) == {"state", "param_groups"}:
                role = "optimizer"
            if kind == "ordered" and (told := getattr(value, ATTRIBUTE, None)):
                self._attribute(told, path)
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
        # Most are such texts, and stand as they are.
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
    staging: where it takes one of the tensors it has copies of all that is written; they are there
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


def _as(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bytes as elements of another dtype; what is no whole one is left out."""
    if flat.dtype == dtype:
        return flat
    return flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)


def decode(tree: Any, load: Callable[[str], torch.Tensor], array: Callable[[str], Any], attributes: Any = None) -> Any:
    """The object that encode() was given; load(name) is called once for each tensor.

    attributes: as of Encoded; what is none of these is passed over.

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
        ((kind, inner),) = node.items()
        if kind == "array":
            return self._array(inner)
        if kind == "scalar":
            return self._array(inner)[()]
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


def tree_of(file: File | AnyFile) -> tuple[Any, Any]:
    """What its metadata has under MEMBER, and the attributes next to it; None if there are none. A tree is of
    one file: none is looked for in a model in several."""
    if isinstance(file, AnyFile) and file.format in ("safetensors", "thalia-shards"):
        return None, None
    metadata = file.metadata
    beside = metadata.get("pt")
    return metadata.get(MEMBER), beside.get("attributes") if isinstance(beside, dict) else None


def told(attributes: Any) -> list[tuple[str, Any]]:
    """Paths and nodes of attributes as Encoded has them; what is none of these is passed over."""
    pairs = attributes if isinstance(attributes, list) else []
    return [(pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is str]


def _set_attributes(value: Any, attributes: Any, special: Callable[[dict[str, Any]], Any]) -> None:
    """Gives ordered dictionaries, by their paths, what they had besides their items."""
    left = dict(told(attributes))
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


def is_tensor(node: Any) -> bool:
    """Whether it stands for a tensor, or an array."""
    return isinstance(node, dict) and not TENSORS.isdisjoint(node)


def members(node: Any) -> list[tuple[str, Any]] | None:
    """What a container holds, by the names that lead to it; None for what is no container."""
    if not isinstance(node, dict) or is_tensor(node):
        return None
    if "deque" in node:
        return [(str(i), value) for i, value in enumerate(node["deque"])]
    ((kind, inner),) = node.items()
    if kind in MAPPINGS:
        return [(str(key), value) for key, value in inner]
    return [(str(i), value) for i, value in enumerate(inner)] if kind in CONTAINERS else None


def names(tree: Any) -> Iterator[str]:
    """The paths of tensors; within tree_rules()."""
    todo = [("", tree)]
    while todo:
        path, node = todo.pop()
        if is_tensor(node):
            yield path
        todo += [(f"{path}.{key}" if path else key, inner) for key, inner in reversed(members(node) or [])]


#: All that torch has. By attribute, a name in a file would import modules of torch.
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32",
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
        "float4_e2m1fn_x2", "qint8", "quint8", "qint32", "quint4x2", "quint2x4",
        "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
        "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
        "int1", "int2", "int3", "int4", "int5", "int6", "int7",
    )
    if hasattr(torch, name)
}  # fmt: skip


def dtype_of(name: str) -> torch.dtype:
    """Of torch, by its name there. Raises ValueError for anything else."""
    found = _DTYPES.get(name)
    if found is None:
        raise ValueError(f"{name!r} is no dtype")
    return found


TORCH_LEAVES: dict[str, Callable[[Any], Any]] = {
    "size": torch.Size,  # of numbers, which stand as they are
    "dtype": dtype_of,
    "device": torch.device,
}
