"""Objects of classes that a file has no word for: what is stored of them, and under which name.

docs/use/python.md, "What a tree looks like".
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Mapping, MutableSequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._leaves import CLASS, NAME, NO_LEAF


def class_name(value: object) -> str:
    """The class of a value: "argparse.Namespace"."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def named(node: Any, value: object, name: str | None = None) -> dict[str, Any]:
    """The NODE with the class of the value that it was made of. name: of a member of an enumeration."""
    marked = {**node} if isinstance(node, dict) else {"value": node}
    marked[CLASS] = class_name(value)
    if name is not None:
        marked[NAME] = name
    return marked


def parts_of(value: Any) -> Any:
    """The container that stands for an object of a known kind that is none itself: a dataclass, a namespace,
    a generator of random numbers, a mapping or a list of a class of its own, an array of objects.
    NO_LEAF for any other."""
    kind = type(value)
    if isinstance(value, type):
        return NO_LEAF
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    argparse = sys.modules.get("argparse")
    if isinstance(value, SimpleNamespace) or (argparse is not None and isinstance(value, argparse.Namespace)):
        return dict(vars(value))
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return tuple(value.get_state())
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return value.getstate()
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.tolist() if value.ndim else NO_LEAF
    if isinstance(value, Mapping):
        return dict(value)
    # An array.array has elements, and no parts.
    if isinstance(value, MutableSequence) and not hasattr(value, "buffer_info"):
        return list(value)
    return NO_LEAF
