"""Nested containers with tensors as a JSON tree and named tensors, and back. No pickle.

The file's metadata has the tree as {"thalia_checkpoint": {"version": 1, "tree": NODE}}. A NODE is
null, a boolean, a text or a finite number as it is, or an object with one member that tells
what it is: docs/use/python.md, "What a tree looks like". Beside it, as {"pt": {"attributes": [[PATH,
NODE], …]}}, is what torch calls the _metadata of a state_dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .._leaves import CONTAINERS, MAPPINGS, bare

#: The members of a NODE that name what is stored.
TENSORS = frozenset(("tensor", "array", "scalar"))
#: The attribute of a state_dict that load_state_dict() looks at.
ATTRIBUTE = "_metadata"


def listed(attributes: Any) -> list[tuple[str, Any]]:
    """Paths and nodes of attributes as Encoded has them; what is not one of these is passed over."""
    pairs = attributes if isinstance(attributes, list) else []
    return [(pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is str]


def is_tensor(node: Any) -> bool:
    """Whether it stands for a tensor, or an array."""
    # One with a dtype stands for texts or times.
    return isinstance(node, dict) and not TENSORS.isdisjoint(node) and "dtype" not in node


def members(node: Any) -> list[tuple[str, Any]] | None:
    """What a container holds, by the names that lead to it; None for what is no container."""
    if not isinstance(node, dict) or not TENSORS.isdisjoint(node):
        return None
    node = bare(node)
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
    """The dtype of torch with this name. Raises ValueError for anything else."""
    found = _DTYPES.get(name)
    if found is None:
        raise ValueError(f"{name!r} is no dtype")
    return found


TORCH_LEAVES: dict[str, Callable[[Any], Any]] = {
    "size": torch.Size,  # of numbers, which are stored as they are
    "dtype": dtype_of,
    "device": torch.device,
}
