"""The trees of a state that was loaded as Python's objects: what `_type` "python" stands for."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import _core
from .._leaves import CONTAINERS, LEAVES, MAPPINGS, dict_of, restored
from .._objects.text_arrays import of_numbers
from ..errors import FormatError, ThaliaError, make_error
from ._arrays import Framework, Read, reader

#: A file may have 256 levels of JSON.
_LEVELS = 256


class Dialect(NamedTuple):
    """What the tree of a file may hold, and what is made of it."""

    framework: Framework
    """What tensors become."""
    device: Any
    python: bool
    """The file is one of this package: its objects of type python mean what they say."""
    original: bool
    """It is one of the original program: its tags are undone."""
    classes: Mapping[str, type[Any]]
    """Dataclasses by "module.Class"."""
    connections: Framework | None = None
    """What the matrices of connections become, if it is something else."""


def decode_region(name: str, state: dict[str, Any], dialect: Dialect, read: Read | None = None) -> dict[str, Any]:
    """The components of a region by name.

    read: what makes arrays or tensors, by itself as the dialect says. Raises FormatError for a tree that
    breaks the rules; what reading a tensor raises.
    """
    decoder = _Decoder(dialect, read)
    try:
        return decoder.members(state, 0)
    except ThaliaError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        raise make_error(
            FormatError,
            f"region {name!r}: thalia_state.components: got {error!r}, expected a tree as docs/format/states.md has it",
            "bad_value",
            section="metadata",
            region=name,
            field="thalia_state.components",
            value=str(error),
        ) from error


class _Decoder:
    def __init__(self, dialect: Dialect, read: Read | None) -> None:
        self._dialect = dialect
        self._read = read or reader(dialect.framework, dialect.device)
        self._read_numpy = read or reader("numpy")

    def members(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        return {name: self._value(value, depth + 1) for name, value in node.items()}

    def _value(self, node: Any, depth: int) -> Any:
        if depth > _LEVELS:
            raise ValueError("containers lie too deep in each other")
        if isinstance(node, list):
            return [self._value(item, depth + 1) for item in node]
        if isinstance(node, _core.LoadedTensor):
            return self._read(node)
        if not isinstance(node, dict):
            return node
        if node.get("_type") == "python" and self._dialect.python:
            return self._python(str(node["_kind"]), node, depth)
        if self._dialect.original:
            return self._original(node, depth)
        return self.members(node, depth)

    def _python(self, kind: str, node: Mapping[str, Any], depth: int) -> Any:
        inner = node["_value"]
        if kind in CONTAINERS:
            return CONTAINERS[kind](self._value(item, depth + 1) for item in inner)
        if kind in MAPPINGS:
            return dict_of(kind, [(self._value(k, depth + 1), self._value(v, depth + 1)) for k, v in inner])
        if kind == "deque":
            return deque((self._value(item, depth + 1) for item in inner), node.get("_maxlen"))
        if kind == "leaf":
            ((name, value),) = inner.items()
            return LEAVES[name](value)
        if kind in ("numpy", "numpy_scalar"):
            if not isinstance(inner, _core.LoadedTensor):
                raise ValueError(f"a value of the kind {kind!r} that is no tensor")
            array = self._read_numpy(inner)
            if "_dtype" in node and array is not None:
                array = of_numbers(array, node["_dtype"])
            return array[()] if kind == "numpy_scalar" and array is not None else array
        if kind == "named":
            return restored(node["_class"], self._value(inner, depth + 1))
        if kind == "dataclass":
            return self._dataclass(node["_class"], self._value(inner, depth + 1))
        return self._torch(kind, inner)

    def _torch(self, kind: str, value: Any) -> Any:
        if kind not in ("dtype", "device", "size"):
            raise ValueError(f"nothing of the kind {kind!r} is known")
        if self._dialect.framework != "torch":
            return tuple(value) if kind == "size" else value
        from ..torch._tree import TORCH_LEAVES

        return TORCH_LEAVES[kind](value)

    def _original(self, node: Mapping[str, Any], depth: int) -> Any:
        """docs/format/v01.md, "JSON of version 0.1". No class is imported that a file names."""
        if node.get("_type") == "torch.device" and isinstance(node.get("_value"), str):
            return self._torch("device", node["_value"])
        if node.get("_type") == "object_dict" and isinstance(node.get("_dict"), dict):
            return self.members(node["_dict"], depth)
        if isinstance(node.get("_dataclass"), str) and isinstance(node.get("_fields"), dict):
            return self._dataclass(node["_dataclass"], self.members(node["_fields"], depth))
        return self.members(node, depth)

    def _dataclass(self, name: object, fields: Any) -> Any:
        if not (isinstance(name, str) and isinstance(fields, dict) and name in self._dialect.classes):
            return fields
        cls = self._dialect.classes[name]
        later = {field.name for field in dataclasses.fields(cls) if not field.init}
        made = cls(**{key: value for key, value in fields.items() if key not in later})
        for key in later & fields.keys():
            object.__setattr__(made, key, fields[key])  # of a frozen one, too
        return made
