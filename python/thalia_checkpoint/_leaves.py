"""What of a tree holds no tensors: values as NODEs of JSON, and back. No torch is needed.

docs/python.md, "What a tree looks like".
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

#: Of a file's metadata, where the tree stands.
MEMBER = "thalia_checkpoint"
#: Containers in each other. Each is up to three levels of JSON, of which a file may have 256.
DEPTH = 80
#: What leaf_node() gives for a value that is no leaf.
NO_LEAF = object()


def leaf_node(value: Any) -> Any:
    """The NODE of null, a boolean, text, number or bytes; NO_LEAF for anything else."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) < 1 << 53 else {"int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    return NO_LEAF


def set_members(value: set[Any] | frozenset[Any]) -> list[Any]:
    """In an order that does not depend on the process."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=repr)


#: What makes a value of what a NODE's one member holds.
LEAVES: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "bytes": base64.b64decode,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])),
}
CONTAINERS: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
