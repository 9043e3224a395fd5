"""Pytrees of jax as a JSON tree and named tensors, and back. No pickle.

The tree is that of docs/use/python.md, "What a tree looks like". Beside it the metadata have "jax": an
object with the names of the arrays that were jax's, and null, or of random keys their generator.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from .._files.dtypes import array_bytes
from .._files.named import Named
from .._files.tensor import Tensor
from .._leaves import KINDS, NO_LEAF, VERSION, Walk, checked, deque_node, leaf_node, plain, tree_rules, value_of
from .._leaves import described as what_it_is
from .._objects.classes import named, parts_of
from .._objects.text_arrays import as_numbers
from ..errors import NotFoundError, UsageError, make_error
from .arrays import Stored, is_key, mismatch, on_host, stored

#: What was saved, by the members of its NODE.
_ARRAYS: dict[str, type] = {"array": np.ndarray, "scalar": np.generic}
#: What a target has in place of what is not to be read; orbax.checkpoint.PLACEHOLDER.
PLACEHOLDER = ...


class Encoded(NamedTuple):
    """What is written of a pytree."""

    member: dict[str, Any]
    """The metadata's tree, under MEMBER."""
    tensors: list[Named]


class _Opened(NamedTuple):
    """A container of a pytree, one level deep."""

    children: dict[Any, Any]
    """By their keys, places or names."""
    structure: Any


def _opened(value: Any) -> _Opened | None:
    """None for a leaf."""
    entries, structure = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda part: part is not value)
    if value is None or [path for path, _ in entries] == [()]:
        return None
    exact = isinstance(value, dict) or type(value) in (list, tuple)
    keys = [_key(path[0]) if exact else jax.tree_util.keystr(path, simple=True) for path, _ in entries]
    return _Opened(dict(zip(keys, (child for _, child in entries), strict=True)), structure)


def _key(entry: Any) -> Any:
    return entry.idx if isinstance(entry, jax.tree_util.SequenceKey) else entry.key


def is_empty(target: Any) -> bool:
    """Whether it is None, or a container that holds nothing, as optax.MaskedNode()."""
    opened = _opened(target)
    return target is None if opened is None else not opened.children


class _Encoder(Walk):
    def __init__(self, copy: bool) -> None:
        super().__init__("arrays of jax and numpy, numbers, texts, or containers that jax knows as pytrees")
        self._copy = copy
        self.tensors: list[Named] = []
        self.jax: dict[str, str | None] = {}

    def node(self, value: Any, path: tuple[str, ...]) -> Any:
        leaf = leaf_node(value)
        if leaf is not NO_LEAF and not isinstance(value, enum.Enum):
            return leaf
        if isinstance(value, jax.Array):
            return self._of_jax(value, path)
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            return self._of_numpy(value, path)
        with self.inside(value, path):
            return self._container(value, path)

    def _container(self, value: Any, path: tuple[str, ...]) -> Any:
        if (kind := KINDS.get(type(value))) is not None:
            items = ((key.value if isinstance(key, enum.Enum) else key, v) for key, v in value.items())
            return {kind: [[self.node(key, (*path, "key")), self.node(v, (*path, str(key)))] for key, v in items]}
        for kind, cls in (("list", list), ("tuple", tuple)):
            if type(value) is cls:
                return {kind: [self.node(v, (*path, str(i))) for i, v in enumerate(value)]}
        if type(value) is deque:
            return deque_node(value, [self.node(v, (*path, str(i))) for i, v in enumerate(value)])
        opened = _opened(value)
        if opened is None and (container := plain(value)) is not NO_LEAF:
            return self._container(container, path)
        if opened is None:
            return self._of_class(value, path)
        return {"dict": [[name, self.node(v, (*path, name))] for name, v in opened.children.items()]}

    def _of_class(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, enum.Enum):
            return named(self.node(value.value, path), value, value.name)
        if (parts := parts_of(value)) is not NO_LEAF:
            return named(self._container(parts, path), value)
        raise self.cannot(path, what_it_is(value))

    def _of_numpy(self, value: Any, path: tuple[str, ...]) -> Any:
        kind = "scalar" if isinstance(value, np.generic) else "array"
        if (found := as_numbers(value)) is not None:  # a copy
            return {kind: self._add(found[0], path), "dtype": found[1]}
        return {kind: self._add(value.copy() if self._copy else np.asarray(value), path)}

    def _of_jax(self, array: jax.Array, path: tuple[str, ...]) -> Any:
        generator: Any = None
        if is_key(array):
            generator = jax.random.key_impl(array)
            if not isinstance(generator, str):
                raise self.cannot(path, f"random keys of {generator}, a generator without a name")
            array = jax.random.key_data(array)
        name = self._add(on_host(array, copy=self._copy), path)
        self.jax[name] = generator
        return {"array": name}

    def _add(self, array: Any, path: tuple[str, ...]) -> str:
        name = self.name(path)
        self.tensors.append(Named(name, *_elements(array, name)))
        return name


def _elements(array: Any, name: str) -> tuple[str, tuple[int, ...], Any]:
    dtype, data = array_bytes(array, name)
    return dtype, array.shape, data


def encode(item: Any, *, copy: bool) -> Encoded:
    """The tree of a pytree, and its arrays; with `copy` in memory of their own.

    Raises UnsupportedError that names what cannot be saved.
    """
    encoder = _Encoder(copy)
    tree = encoder.node(item, ())
    return Encoded({"version": VERSION, "tree": tree, "jax": encoder.jax}, encoder.tensors)


def decode(member: Any, tensors: Mapping[str, Tensor], path: str) -> Any:
    """What encode() was given, with a Stored for each array, and a dictionary for each container that
    jax alone knows.

    member: of the metadata of the file at `path`, under MEMBER.
    Raises FormatError for a tree that breaks the rules.
    """

    def special(node: dict[str, Any]) -> Any:
        kind = next((kind for kind in _ARRAYS if kind in node), None)
        if kind is None:
            return NO_LEAF
        name = node[kind]
        saved = jax.Array if name in of_jax else _ARRAYS[kind]
        return stored(tensors[name], saved, of_jax.get(name), node.get("dtype"))

    tree = checked(member, path)
    with tree_rules(path):
        of_jax: dict[str, str | None] = dict(member.get("jax", {}))
        return value_of(tree, special)


def mapped(found: Any, array: Callable[[Stored], Any]) -> Any:
    """The same containers, with array(s) in place of each Stored s."""
    if isinstance(found, Stored):
        return array(found)
    if isinstance(found, dict):
        pairs = {key: mapped(value, array) for key, value in found.items()}
        return type(found)(pairs)
    if isinstance(found, deque):
        return deque((mapped(value, array) for value in found), found.maxlen)
    if isinstance(found, list | tuple | set | frozenset):
        return type(found)(mapped(value, array) for value in found)
    return found


def fitted(found: Any, target: Any, where: str, leaf: Callable[[Any, Any, str], Any]) -> Any:
    """The containers of `target`, with leaf(stored, asked, where) in place of each of its leaves.

    where: names the place in messages, the file first. PLACEHOLDER takes the place of anything, also of
    what the file lacks; None and containers that hold nothing that of each other and of a leaf, which is
    not read.
    Raises NotFoundError for what the file lacks, UsageError for what only the file has.
    """
    is_container = isinstance(found, dict | list | tuple) and len(found) > 0
    if target is PLACEHOLDER or (not is_container and is_empty(target)):
        return target
    opened = _opened(target)
    if opened is None:
        return leaf(found, target, where)
    held = dict(enumerate(found)) if isinstance(found, list | tuple | deque) else found
    if not isinstance(held, dict):
        raise mismatch(where, "structure", described(found), described(target))
    missing = [key for key, child in opened.children.items() if key not in held and child is not PLACEHOLDER]
    only = missing or [key for key in held if key not in opened.children]
    if only:
        error = NotFoundError if missing else UsageError
        raise make_error(
            error,
            f"{where}: {', '.join(map(str, only))}: {'the file has none' if missing else 'the target has none'}; "
            f"expected {', '.join(map(str, held))}",
            "not_found" if missing else "bad_argument",
            field=str(only[0]),
        )
    parts = [fitted(held.get(key), child, f"{where}.{key}", leaf) for key, child in opened.children.items()]
    return jax.tree_util.tree_unflatten(opened.structure, parts)


def described(value: Any) -> str:
    """For messages."""
    if isinstance(value, Stored):
        return f"an array {value.dtype}{list(value.shape)}"
    return "None" if value is None else type(value).__name__
