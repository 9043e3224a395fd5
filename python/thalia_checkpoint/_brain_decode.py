"""A region's state out of a file: the tree of its metadata, with tensors. docs/format/states.md, "States"."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ._brain_arrays import Framework, is_restorable, reader
from ._brain_metadata import NUMBERS
from ._brain_tree import ROLES, VERSION
from ._file import Region
from ._leaves import CONTAINERS, LEAVES, MAPPINGS, dict_of
from ._tensor import Tensor
from .errors import FormatError, ThaliaError, UnsupportedError, make_error

_COMPONENTS: dict[str, str] = {}
for _component, _role in ROLES.items():
    _COMPONENTS.setdefault(_role, _component)
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
    widen: bool
    """Half precision comes back as f32."""
    classes: Mapping[str, type[Any]]
    """Dataclasses by "module.Class"."""
    connections: Framework | None = None
    """What the matrices of connections become, where it is something else."""


def decode_region(region: Region, dialect: Dialect, read: Callable[[Tensor, str | None], Any] | None = None) -> Any:
    """The components of a region by name.

    read: by itself what makes arrays or tensors, as the dialect says. Raises FormatError,
    UnsupportedError for a tree that breaks the rules; what reading a tensor raises.
    """
    return _Decoder(region, dialect, read or reader(dialect.framework, dialect.device)).state()


def stored_as(tensor: Tensor, node: Any, dialect: Dialect, where: str) -> str | None:
    """The element type that a tensor had before it was stored; None where it is the same.

    node: what the file tells of the tensor, if it is an object. Raises FormatError for one that it cannot have had.
    """
    if not isinstance(node, Mapping) or "_dtype" not in node:
        return "f32" if dialect.widen and tensor.dtype in ("f16", "bf16") else None
    dtype = node["_dtype"]
    if is_restorable(dtype, tensor):
        return str(dtype)
    expected = f"a type that {tensor.name!r}, of {tensor.dtype}, may have had"
    raise make_error(
        FormatError,
        f"{where}: _dtype: got {dtype!r}, expected {expected}",
        "bad_value",
        section="metadata",
        region=tensor.region,
        field="_dtype",
        value=str(dtype),
        expected=expected,
    )


class _Decoder:
    def __init__(self, region: Region, dialect: Dialect, read: Callable[[Tensor, str | None], Any]) -> None:
        self._region = region
        self._dialect = dialect
        self._read = read
        self._told: set[str] = set()

    def state(self) -> dict[str, Any]:
        tree = self._region.metadata.get("thalia_state")
        components: Any = {}
        if tree is not None:
            if not isinstance(tree, dict) or tree.get("version") != VERSION or isinstance(tree["version"], bool):
                found = tree.get("version") if isinstance(tree, dict) else tree
                raise self._bad("version", found, str(VERSION), UnsupportedError, "unsupported_version")
            components = tree.get("components")
            if not isinstance(components, dict):
                raise self._bad("components", components, "an object")
        if self._region.config and "config" not in components:
            components = {**components, "config": {"_type": "config"}}
        try:
            state = {name: self._value(node, 0, name == "config") for name, node in components.items()}
            self._unnamed(state)
        except ThaliaError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
            raise self._bad("components", error, "a tree as docs/format/states.md has it") from error
        return state

    def _unnamed(self, state: dict[str, Any]) -> None:
        """Tensors that the tree does not name belong to the components of their roles."""
        for name, tensor in self._region.items():
            if name in self._told:
                continue
            component = _free(state, _COMPONENTS.get(str(tensor.role), "other"), lambda found: isinstance(found, dict))
            members = state.setdefault(component, {})
            members[_free(members, name, lambda _: False)] = self._tensor(tensor, {}, self._read)

    def _value(self, node: Any, depth: int, config: bool = False) -> Any:
        if depth > _LEVELS:
            raise ValueError("containers lie too deep in each other")
        if isinstance(node, list):
            return [self._value(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node.get("_type")
        if kind == "tensor":
            return self._tensor(self._find(node), node, self._read)
        if kind == "scalar":
            return self._scalar(self._find(node))
        if kind == "config" and config:
            return self._region.config
        if kind == "number":
            text = node.get("_text")
            if not isinstance(text, str) or text not in NUMBERS:
                raise self._bad("_text", text, ", ".join(NUMBERS))
            return NUMBERS[text]
        if kind == "object":
            members = node.get("_members")
            if not isinstance(members, dict):
                raise self._bad("_members", members, "an object")
            return self._members(members, depth)
        if kind == "python" and self._dialect.python:
            return self._python(str(node["_kind"]), node, depth)
        if self._dialect.original:
            return self._original(node, depth)
        return self._members(node, depth)

    def _members(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        return {name: self._value(value, depth + 1) for name, value in node.items()}

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
            array = self._tensor(self._find(inner), inner, reader("numpy"))
            return array[()] if kind == "numpy_scalar" else array
        if kind == "dataclass":
            return self._dataclass(node["_class"], self._value(inner, depth + 1))
        return self._torch(kind, inner)

    def _torch(self, kind: str, value: Any) -> Any:
        if kind not in ("dtype", "device", "size"):
            raise ValueError(f"nothing of the kind {kind!r} is known")
        if self._dialect.framework != "torch":
            return tuple(value) if kind == "size" else value
        from ._torch_tree import TORCH_LEAVES

        return TORCH_LEAVES[kind](value)

    def _original(self, node: Mapping[str, Any], depth: int) -> Any:
        """docs/format/v01.md, "JSON of version 0.1". No class is imported that a file names."""
        if node.get("_type") == "torch.device" and isinstance(node.get("_value"), str):
            return self._torch("device", node["_value"])
        if node.get("_type") == "object_dict" and isinstance(node.get("_dict"), dict):
            return self._members(node["_dict"], depth)
        if isinstance(node.get("_dataclass"), str) and isinstance(node.get("_fields"), dict):
            return self._dataclass(node["_dataclass"], self._members(node["_fields"], depth))
        return self._members(node, depth)

    def _dataclass(self, name: object, fields: Any) -> Any:
        if not (isinstance(name, str) and isinstance(fields, dict) and name in self._dialect.classes):
            return fields
        cls = self._dialect.classes[name]
        later = {field.name for field in dataclasses.fields(cls) if not field.init}
        made = cls(**{key: value for key, value in fields.items() if key not in later})
        for key in later & fields.keys():
            object.__setattr__(made, key, fields[key])  # of a frozen one, too
        return made

    def _find(self, node: Any) -> Tensor:
        name = node.get("_name")
        if not isinstance(name, str):
            raise self._bad("_name", name, "a text")
        self._told.add(name)
        if name not in self._region:
            raise self._bad("_name", name, "the name of a tensor of the region", code="inconsistent")
        return self._region[name]

    def _tensor(self, tensor: Tensor, node: Mapping[str, Any], read: Callable[[Tensor, str | None], Any]) -> Any:
        return read(tensor, stored_as(tensor, node, self._dialect, f"region {self._region.name!r}"))

    def _scalar(self, tensor: Tensor) -> int | float:
        if tensor.dtype not in ("f64", "i64") or tensor.shape != () or tensor.encoding != "dense":
            found = f"{tensor.name}: {tensor.dtype}{list(tensor.shape)} {tensor.encoding}"
            raise self._bad("_name", found, "a dense f64 or i64 of shape []", code="inconsistent")
        value: int | float = tensor.numpy().item()
        return value

    def _bad(
        self,
        field: str,
        value: object,
        expected: str,
        cls: type[ThaliaError] = FormatError,
        code: str = "bad_value",
    ) -> ThaliaError:
        field = field if field.startswith("_") else f"thalia_state.{field}"
        name = self._region.name
        return make_error(
            cls,
            f"region {name!r}: {field}: got {value!r}, expected {expected}",
            code,
            section="metadata",
            region=name,
            field=field,
            value=str(value),
            expected=expected,
        )


def _free(taken: Mapping[str, Any], name: str, may_be: Callable[[Any], bool]) -> str:
    unique, n = name, 1
    while unique in taken and not may_be(taken[unique]):
        n += 1
        unique = f"{name}~{n}"
    return unique
